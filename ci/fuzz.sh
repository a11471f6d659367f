#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fuzzes every target for SECONDS (default 60) in all, from corpus/seeds, under ASan and UBSan.
# New inputs stay in build/simt-asan-ubsan/corpus; a finding prints the command that replays it.
# shellcheck source=ci/lib.sh
. "$(dirname "$0")/lib.sh"
seconds=${1:-60}

tree=build/simt-asan-ubsan
build simt-asan-ubsan all_fuzzers
mapfile -t targets < <(find "$tree/fuzz" -maxdepth 1 -type f -executable -name 'fuzz_*' | sort)
[ ${#targets[@]} -gt 0 ] || {
  echo "no fuzz target was built" >&2
  exit 1
}
for target in "${targets[@]}"; do
  name=$(basename "$target")
  work="$tree/corpus/$name"
  mkdir -p "$work" "$tree/findings"
  log="$tree/$name.log"
  if ! "$target" -max_total_time=$((seconds / ${#targets[@]})) -timeout=20 -max_len=300 -seed=1 -print_final_stats=1 \
    -artifact_prefix="$tree/findings/$name-" "$work" "corpus/seeds/$name" >"$log" 2>&1; then
    tail -n 40 "$log"
    echo "replay: $target $tree/findings/$name-<artifact>" >&2
    exit 1
  fi
  printf '%-24s %s\n' "$name" "$(grep -E '^Done|number_of_executed_units' "$log" | tr '\n' ' ')"
done
