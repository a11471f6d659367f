#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Both README commands on a machine that has nothing yet: a bare Debian 12 in a folder of its own, with a clone of HEAD.
# Says how long each took, and the last lines of what failed. Needs root (or a user namespace with a range of ids),
# mmdebstrap, and 12 GB under TMPDIR. Takes what the two commands take: an hour on 2 cores.
# Usage: fresh.sh [--record] [COMMAND...] (ci/check.sh ci/test.sh); --record writes ci/build_times.csv
# shellcheck source=ci/lib.sh
. "$(dirname "$0")/lib.sh"
record=
if [ "${1:-}" = --record ]; then
  record=1
  shift
fi
[ $# -gt 0 ] || set -- ci/check.sh ci/test.sh
command -v mmdebstrap >/dev/null || {
  echo "fresh: install mmdebstrap (apt-get install mmdebstrap)" >&2
  exit 1
}
if [ "$(id -u)" -ne 0 ]; then
  exec unshare --user --map-root-user --map-auto --mount "$root/ci/fresh.sh" ${record:+--record} "$@"
fi

machine=$(mktemp -d "${TMPDIR:-/tmp}/assay-fresh.XXXXXX")
logs=$root/build/fresh
rm -rf "$logs"
mkdir -p "$logs"
# The folder goes, and never what is still mounted in it.
trap 'umount -R "$machine/proc" "$machine/dev" 2>/dev/null || true; rm -rf --one-file-system "$machine"' EXIT

step "a bare Debian 12 in $machine"
mmdebstrap --quiet --variant=minbase --components=main bookworm "$machine" http://deb.debian.org/debian
cp /etc/resolv.conf "$machine/etc/resolv.conf"
mount --rbind /proc "$machine/proc"
mount --rbind /dev "$machine/dev"
mount --make-rslave "$machine/proc"
mount --make-rslave "$machine/dev"
git clone --quiet --no-hardlinks "$root" "$machine/root/assay"

# in_machine COMMAND...: nothing of this machine's environment reaches it.
in_machine() {
  chroot "$machine" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
    bash -c 'cd /root/assay && exec "$@"' - "$@" </dev/null
}

failed=0
for command in "$@"; do
  log=$logs/$(basename "$command" .sh).log
  begin=$SECONDS code=0
  step "$command (log: ${log#"$root"/})"
  in_machine "$command" >"$log" 2>&1 || code=$?
  printf '%s: exit %d, %d s\n' "$command" "$code" $((SECONDS - begin))
  if [ $code -ne 0 ]; then
    tail -n 40 "$log"
    failed=1
  fi
done
if [ -n "$record" ] && [ $failed -eq 0 ]; then
  {
    echo "preset,steps,seconds,cores"
    sed -nE 's/^built (\S+): ([0-9]+) steps in ([0-9]+) s on ([0-9]+) cores$/\1 \2 \3 \4/p' "$logs"/*.log |
      awk '{ steps[$1] += $2; seconds[$1] += $3; cores[$1] = $4 }
        END { for (preset in steps) print preset "," steps[preset] "," seconds[preset] "," cores[preset] }' | sort
  } >ci/build_times.csv
fi
exit $failed
