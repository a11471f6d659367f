#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The folder is the layer: who may include what, where instructions may stand, and whether the
# directory map in HACKING.md is the tree's. Prints every violation; exit 1 when there is one.
. "$(dirname "$0")/lib.sh"
found=0
report() {
  printf '%s\n' "$1"
  found=1
}

# layer FOLDER ALLOWED: files of FOLDER include from the project only paths that match ALLOWED.
layer() {
  local folder=$1 allowed=$2 line
  while IFS= read -r line; do
    [ -z "$line" ] || report "layer: $line  (allowed for $folder: $allowed)"
  done < <(grep -rnE '^#include "' --include='*.h' --include='*.cuh' --include='*.cpp' --include='*.cu' --include='*.c' "$folder" 2>/dev/null |
    grep -v '/tests/' | grep -vE "#include \"($allowed)" || true)
}
layer kernels/abi 'kernels/abi/|assay.h"'
layer kernels/simt 'kernels/simt/'
layer kernels/arch 'kernels/arch/|kernels/simt/'
layer kernels/common 'kernels/(common|arch)/'
layer kernels/plan 'kernels/(plan|arch)/'
layer kernels/host 'kernels/(host|plan|common|arch|abi)/|kernels/simt/launch.h'
layer kernels/decode 'kernels/(decode|host|plan|common|arch|abi)/'
layer kernels/merge 'kernels/(merge|host|plan|common|arch|abi)/'
layer kernels/cascade 'kernels/(cascade|host|plan|common|arch|abi)/'
layer kernels/api 'kernels/(api|decode|merge|cascade|host|plan|common|arch|abi)/'
layer oracle 'oracle/|kernels/abi/'
# `assay bench` and `assay mutants` are about kernels, not about cases.
layer properties 'properties/|oracle/|kernels/(abi|simt)/|kernels/bench/(report|cells_file|verify).h|corpus/mutants/mutants.h'
layer fuzz 'fuzz/|properties/|oracle/|kernels/(abi|simt|common|arch|plan)/'
# The executor is the harness's business only where kernels are run.
while IFS= read -r line; do
  [ -z "$line" ] || report "layer: $line  (kernels/simt belongs to properties/sut)"
done < <(grep -rnE '#include "kernels/simt/' properties 2>/dev/null | grep -vE '^properties/(sut|tests)/' || true)

# Instructions live in kernels/arch; launches in kernels/host.
while IFS= read -r line; do
  [ -z "$line" ] || report "instruction outside kernels/arch: $line"
done < <(grep -rnE '\basm\b|threadIdx|blockIdx|__shfl|__shared__|__syncthreads|<<<' --include='*.cuh' --include='*.h' --include='*.cu' kernels |
  grep -vE '^kernels/(arch|host|bench)/' | grep -vE ':[0-9]+: *//' || true)

# Every folder named in the directory map exists, and every folder is named.
if [ -f HACKING.md ]; then
  map=$(sed -n '/^<!-- map -->/,/^<!-- \/map -->/p' HACKING.md | grep -oE '^[a-z./_]+/' | sort -u)
  tree=$(git ls-files | grep -oE '^(kernels/[a-z]+|properties/[a-z]+|oracle|fuzz|corpus/[a-z]+|ci)/' | sort -u)
  while IFS= read -r line; do
    [ -z "$line" ] || report "HACKING.md directory map differs from the tree: $line"
  done < <(diff <(printf '%s\n' "$map") <(printf '%s\n' "$tree") | grep -E '^[<>]' || true)
fi

# House limits.
while IFS= read -r file; do
  lines=$(wc -l <"$file")
  [ "$lines" -le 600 ] || report "$file has $lines lines (limit 600)"
  head -n 3 "$file" | grep -q 'SPDX-License-Identifier' || report "$file: no SPDX line"
  if LC_ALL=C grep -nP '[^\x00-\x7F]' "$file" >/dev/null; then report "$file: not ASCII"; fi
done < <(git ls-files '*.h' '*.cuh' '*.cpp' '*.cu' '*.c' '*.py' '*.sh' '*.cmake' 'CMakeLists.txt')
[ "$found" -eq 0 ] && echo "layers, limits and map: ok"
exit "$found"
