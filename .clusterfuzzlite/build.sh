#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds every fuzz target into $OUT, each with its seeds, options and libraries. ClusterFuzzLite runs it with its own clang:
# CC, CXX, CFLAGS, CXXFLAGS (a sanitizer, -stdlib=libc++), LIB_FUZZING_ENGINE, SRC, WORK and OUT are set.
#
# What Debian and Ubuntu build from C++ has libstdc++'s names. So fmt and toml++ are used as headers; of Boost.Context the
# fibers need nothing but C; no target draws cases, so that the linker takes nothing from RapidCheck's library.
set -eu
build=$WORK/assay
# The distribution's package would set TOML_HEADER_ONLY=0 behind our flags, and link its library, which has no assertions: some
# of them are about what it reads.
mkdir -p "$WORK/toml"
cat >"$WORK/toml/tomlplusplusConfig.cmake" <<'EOF'
add_library(tomlplusplus::tomlplusplus INTERFACE IMPORTED)
target_compile_options(tomlplusplus::tomlplusplus INTERFACE "-DTOML_ASSERT(x)=static_assert(true)")
EOF

cmake -S "$SRC/assay" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -Dtomlplusplus_DIR="$WORK/toml" \
  -DCMAKE_CXX_FLAGS="$CXXFLAGS -DFMT_HEADER_ONLY=1 -DTOML_HEADER_ONLY=1 -Wno-macro-redefined" \
  -DCMAKE_BUILD_RPATH="\$ORIGIN/lib" \
  -DASSAY_CUDA=OFF -DASSAY_TESTS=OFF -DASSAY_MUTANTS=OFF -DASSAY_INSTALL=OFF -DASSAY_MARCH=x86-64-v2 \
  -DASSAY_FUZZ_ENGINE=ON -DASSAY_FUZZ_LINK="$LIB_FUZZING_ENGINE"
cmake --build "$build" --target all_fuzzers

mkdir -p "$OUT/lib"
for target in "$build"/fuzz/fuzz_*; do
  name=$(basename "$target")
  seeds=$SRC/assay/corpus/seeds/$name
  if [ ! -f "$target" ] || [ ! -d "$seeds" ]; then continue; fi
  cp "$target" "$OUT/$name"
  ldd "$target" | awk '$3 ~ /(boost|fmt|tomlplusplus|gmp|mpf)/ { print $3 }' | xargs -r cp -L -t "$OUT/lib"
  (cd "$seeds" && zip -q -r "$OUT/${name}_seed_corpus.zip" .)
  printf '[libfuzzer]\nmax_len = 300\nlen_control = 0\ntimeout = 20\n' >"$OUT/$name.options"
done
