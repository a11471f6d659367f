#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Both README commands on a machine that has nothing yet: a bare Debian 12 in a folder of its own, with a clone of HEAD.
# Says how long each took, and the last lines of what failed. Needs root (or a user namespace with a range of ids),
# mmdebstrap, and 12 GB under TMPDIR. Takes what the two commands take: an hour on 2 cores.
# Usage: fresh.sh [COMMAND...] (ci/check.sh ci/test.sh)
# shellcheck source=ci/lib.sh
. "$(dirname "$0")/lib.sh"
[ $# -gt 0 ] || set -- ci/check.sh ci/test.sh
command -v mmdebstrap >/dev/null || {
  echo "fresh: install mmdebstrap (apt-get install mmdebstrap)" >&2
  exit 1
}
if [ "$(id -u)" -ne 0 ]; then
  exec unshare --user --map-root-user --map-auto --mount "$root/ci/fresh.sh" "$@"
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
exit $failed
