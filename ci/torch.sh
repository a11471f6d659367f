#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs torch for the tests of kernels/torch and properties/python: from PyPI, pinned by ci/torch/requirements.txt, into
# a virtual environment that is kept for all clones (under $XDG_CACHE_HOME/assay). Prints the path of its Python.
# Only the wheel itself is fetched, 0.5 GB, and not the libraries of CUDA that it names, which are 3 GB more. It loads them
# when it is imported, so stubs stand in their place: every function of CUDA answers that there is no device.
# Where pip reaches no package index it prints nothing, and fails if ASSAY_REQUIRE_TORCH is set.
# shellcheck source=ci/lib.sh
. "$(dirname "$0")/lib.sh"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/assay
venv=$cache/torch
export PIP_DISABLE_PIP_VERSION_CHECK=1
mkdir -p "$cache"
exec 9>"$cache/torch.lock"
flock 9

if cat ci/torch.sh ci/torch/requirements.txt | cmp -s - "$venv/made_by"; then
  echo "$venv/bin/python"
  exit 0
fi

# stubs LIBRARIES: what the libraries of a folder need of CUDA, as libraries without code of their own.
stubs() (
  cd "$1"
  shopt -s nullglob
  # Every function lies in one library that bears none of the names: a library that is asked for versions must have some.
  {
    # 100 is cudaErrorNoDevice.
    nm -D --undefined-only ./*.so | awk '{ sub(/@.*/, "", $NF); print $NF }' | grep -E '^_*(cu|nv|nccl)' | sort -u | awk '
      /(String|Name)$/ { print "const char* " $1 "(void) { return \"no CUDA here\"; }"; next }
      { print "int " $1 "(void) { return 100; }" }'
  } >no_cuda.c
  cc -w -fno-builtin -shared -fPIC no_cuda.c -o libno_cuda.so
  local name
  for name in $(objdump -p ./*.so | awk '$1 == "NEEDED" && $2 ~ /^lib(cu|nv|nccl)/ { print $2 }' | sort -u); do
    cc -shared -fPIC -x c /dev/null -o "$name" -Wl,--no-as-needed -L. -lno_cuda "-Wl,-rpath,\$ORIGIN"
  done
)

rm -rf "$venv"
/usr/bin/python3 -m venv --system-site-packages "$venv"
if ! "$venv/bin/pip" download -q --no-deps -d "$venv/download" filelock >"$cache/torch.log" 2>&1; then
  rm -rf "$venv"
  echo "torch: not installed, pip reaches no package index" >&2
  [ -z "${ASSAY_REQUIRE_TORCH:-}" ]
  exit
fi
{
  # The requirements are complete: pip would bring what torch says that it needs on a GPU.
  "$venv/bin/pip" install --no-deps --no-cache-dir -r ci/torch/requirements.txt &&
    stubs "$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/torch/lib" &&
    "$venv/bin/python" -c 'import torch; assert not torch.cuda.is_available()'
} >"$cache/torch.log" 2>&1 || {
  tail -n 20 "$cache/torch.log" >&2
  exit 1
}
rm -rf "$venv/download"
cat ci/torch.sh ci/torch/requirements.txt >"$venv/made_by"
echo "$venv/bin/python"
