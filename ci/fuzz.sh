#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fuzzes every target from corpus/seeds under ASan and UBSan, a target a core: each runs at least as many new inputs as it has
# seeds, however long that takes, and goes on while its share of SECONDS (default 60) lasts.
# New inputs stay in build/simt-asan-ubsan/corpus; a finding prints the command that replays it.
# shellcheck source=ci/lib.sh
. "$(dirname "$0")/lib.sh"
seconds=${1:-60}
longest=240 # seconds for the seeds and as many new inputs

tree=build/simt-asan-ubsan
build simt-asan-ubsan all_fuzzers
mapfile -t targets < <(find "$tree/fuzz" -maxdepth 1 -type f -executable -name 'fuzz_*' ! -name '*_test' | sort)
[ ${#targets[@]} -gt 0 ] || {
  echo "no fuzz target was built" >&2
  exit 1
}
share=$((seconds / ${#targets[@]}))

# run_target TARGET OPTION...: appends to the target's log; `new` grows by the inputs that are no seeds.
run_target() {
  local target=$1 name log part
  shift
  name=$(basename "$target")
  log="$tree/$name.log"
  part="$tree/$name.part.log"
  if ! "$target" -timeout=20 -max_len=300 -len_control=0 -print_final_stats=1 \
    -artifact_prefix="$tree/findings/$name-" "$@" "$tree/corpus/$name" "corpus/seeds/$name" >"$part" 2>&1; then
    tail -n 40 "$part"
    echo "replay: $target $tree/findings/$name-<artifact>" >&2
    exit 1
  fi
  cat "$part" >>"$log"
  local loaded executed
  loaded=$(sed -nE 's/^#([0-9]+)[[:space:]]+INITED.*/\1/p' "$part")
  executed=$(sed -nE 's/^stat::number_of_executed_units:[[:space:]]*([0-9]+)$/\1/p' "$part")
  new=$((new + ${executed:-0} - ${loaded:-${executed:-0}}))
  rm "$part"
}

fuzz_target() {
  local target=$1 name work seeds kept new begin left
  name=$(basename "$target")
  work="$tree/corpus/$name"
  mkdir -p "$work" "$tree/findings"
  : >"$tree/$name.log"
  seeds=$(find "corpus/seeds/$name" -type f | wc -l)
  kept=$(find "$work" -type f | wc -l)
  new=0
  begin=$SECONDS
  # Every file and the empty input, each at most twice, then as many new ones as there are seeds.
  run_target "$target" -seed=1 -max_total_time=$longest "-runs=$((2 * (seeds + kept + 1) + seeds))"
  left=$((share - (SECONDS - begin)))
  [ $left -lt 2 ] || run_target "$target" -seed=2 -max_total_time=$left
  printf '%-14s %4d seeds %8d new inputs %4d s\n' "$name" "$seeds" "$new" $((SECONDS - begin))
  if [ "$seeds" -eq 0 ] || [ "$new" -lt "$seeds" ]; then
    echo "$name ran $new new inputs in $longest s; it has $seeds seeds and must run at least 1 and as many" >&2
    exit 1
  fi
}

export -f run_target fuzz_target
export tree share longest
printf '%s\n' "${targets[@]}" | xargs -P "$jobs" -I{} bash -euo pipefail -c 'fuzz_target {}'
