# SPDX-License-Identifier: Apache-2.0
# assay_together(target ...)  of many small files: with ASSAY_UNITY the compiler takes eight of them at a time, and reads what
#                           they include once. Names of a file alone are then those of eight. Kernels are
#                           compiled four at a time (kernels/api); the oracle as it stands, a file at a time, and so is
#                           what plugins link, as a linker takes whole objects.
function(assay_together)
  if(ASSAY_UNITY)
    set_target_properties(${ARGN} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
endfunction()

# assay_unoptimised(target ...)  for code that takes longer to compile than to run, templates of JSON above all: it compiles
#                           in half the time
function(assay_unoptimised)
  foreach(target ${ARGN})
    if(TARGET ${target})
      target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O0>)
    endif()
  endforeach()
endfunction()

# assay_unoptimised_instrumented(target ...)  where sanitizers instrument them: tests of the executor and of what kernels are
#                           made of, every access a call that is inlined, compile in a third of the time and run a few seconds
function(assay_unoptimised_instrumented)
  if(ASSAY_SANITIZE)
    assay_unoptimised(${ARGN})
  endif()
endfunction()

# assay_without_cache(target ...)  of kernels made wrong in a tree of their own, whose headers stand in front of those of the
#                           sources: ccache knows the files that were read, not those that were looked for in vain, and would hand out
#                           an object from before a header was shadowed, without its mutants
function(assay_without_cache)
  set_target_properties(${ARGN} PROPERTIES C_COMPILER_LAUNCHER "" CXX_COMPILER_LAUNCHER "" CUDA_COMPILER_LAUNCHER "")
endfunction()

# assay_schemata(tree folder...)  the kernels with every mutant of these folders behind a switch, in the folder `tree`, and
#                           the table of the mutants (ci/make_schemata.py)
function(assay_schemata tree)
  list(TRANSFORM ARGN APPEND "/*.mutant" OUTPUT_VARIABLE globs)
  file(GLOB mutants CONFIGURE_DEPENDS ${globs})
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/*.cuh ${PROJECT_SOURCE_DIR}/kernels/*.h)
  file(CONFIGURE OUTPUT ${tree}/mutants.txt CONTENT "${mutants}") # changes when a mutant goes, too
  set(scripts ${PROJECT_SOURCE_DIR}/ci/make_schemata.py ${PROJECT_SOURCE_DIR}/ci/wrong.py)
  list(JOIN ARGN "," folders)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  add_custom_command(
    OUTPUT ${tree}/mutant_table.inc
    COMMAND Python3::Interpreter -B ${PROJECT_SOURCE_DIR}/ci/make_schemata.py ${folders} ${PROJECT_SOURCE_DIR} ${tree}
    COMMAND ${CMAKE_COMMAND} -E touch ${tree}/mutant_table.inc
    BYPRODUCTS ${tree}/mutant_omitted.inc
    DEPENDS ${tree}/mutants.txt ${mutants} ${headers} ${scripts}
    COMMENT "Mutant schemata")
endfunction()

# assay_mutate(target PUBLIC|PRIVATE tree source...)  compiles a target over schemata; these sources have numbers of mutants
function(assay_mutate target scope tree)
  target_sources(${target} PRIVATE ${tree}/mutant_table.inc)
  set_source_files_properties(${ARGN} PROPERTIES OBJECT_DEPENDS ${tree}/mutant_table.inc)
  target_include_directories(${target} BEFORE ${scope} ${tree})
  # A mutant may leave an operand unused, or the bound of an unrolled loop to run time.
  target_compile_options(${target} ${scope} -Wno-unused -Wno-pass-failed)
  assay_without_cache(${target})
endfunction()

# assay_fuzz_hears(target NOTHING|EDGES)  of code whose edges, or the operands of whose comparisons, tell a fuzzer nothing about
#                           what it explores. Those cost a call each, a third of the time of a whole case. Behind all
#                           that the target links: the last of contrary options holds.
function(assay_fuzz_hears target what)
  if(ASSAY_FUZZ_ENGINE)
    if(NOT TARGET assay_fuzz_NOTHING)
      add_library(assay_fuzz_NOTHING INTERFACE)
      target_compile_options(assay_fuzz_NOTHING INTERFACE -fno-sanitize=fuzzer-no-link)
      add_library(assay_fuzz_EDGES INTERFACE)
      target_compile_options(assay_fuzz_EDGES INTERFACE -fno-sanitize-coverage=trace-cmp)
    endif()
    target_link_libraries(${target} PRIVATE assay_fuzz_${what})
  endif()
endfunction()

# assay_find_python()  the tests' Pythons: ASSAY_PYTHON, the system's, and ASSAY_TORCH_PYTHON, that of the environment variable of
#     this name (ci/torch.sh makes one with torch), else the system's: tests that need torch are then skipped. ASSAY_PYTEST is the
#     command that runs a file of tests, without those marked nightly where ASSAY_NIGHTLY is not set.
macro(assay_find_python)
  find_program(ASSAY_PYTHON python3 HINTS /usr/bin REQUIRED)
  set(ASSAY_TORCH_PYTHON ${ASSAY_PYTHON})
  if(DEFINED ENV{ASSAY_TORCH_PYTHON})
    set(ASSAY_TORCH_PYTHON $ENV{ASSAY_TORCH_PYTHON})
  endif()
  set(ASSAY_PYTEST ${ASSAY_TORCH_PYTHON} -B -m pytest -q -rs -p no:cacheprovider)
  if("$ENV{ASSAY_NIGHTLY}" STREQUAL "")
    list(APPEND ASSAY_PYTEST -m "not nightly")
  endif()
endmacro()

# assay_sources(out suffix source...)  these files; of a folder (its name ends in /) those whose names end in the suffix
function(assay_sources out suffix)
  set(files)
  foreach(source IN LISTS ARGN)
    if(source MATCHES "/$")
      file(GLOB found CONFIGURE_DEPENDS ${source}*${suffix})
      list(APPEND files ${found})
    else()
      list(APPEND files ${source})
    endif()
  endforeach()
  set(${out} ${files} PARENT_SCOPE)
endfunction()

# assay_add_library(name SOURCES ... LIBS ...)      static library with the house flags, from files and folders/
# assay_add_test(name [PART] SOURCES ... LIBS ... LABELS ... SLOW ... DEFINES ... NEEDS ...)  GoogleTest executable, from files and
#     the *_test.cpp of folders/, one ctest per case; without
#     ASSAY_SLOW_TESTS those labelled slow are not built, and the cases named by SLOW are left out; without
#     ASSAY_PART_TESTS those of parts are not built. NEEDS: targets that it runs or loads
function(assay_add_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  assay_sources(sources .cpp ${ARG_SOURCES})
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC $<BUILD_INTERFACE:assay_strict> ${ARG_LIBS})
endfunction()

function(assay_add_test name)
  if(NOT ASSAY_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "PART" "" "SOURCES;LIBS;LABELS;SLOW;DEFINES;NEEDS" ${ARGN})
  if(NOT ARG_SOURCES OR NOT ARG_LABELS)
    message(FATAL_ERROR "assay_add_test(${name}) needs SOURCES and LABELS")
  endif()
  if(("slow" IN_LIST ARG_LABELS AND NOT ASSAY_SLOW_TESTS) OR (ARG_PART AND NOT ASSAY_PART_TESTS))
    return()
  endif()
  assay_sources(sources _test.cpp ${ARG_SOURCES})
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE assay_strict ${ARG_LIBS} GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE ${ARG_DEFINES})
  if(ARG_NEEDS)
    add_dependencies(${name} ${ARG_NEEDS})
  endif()
  assay_fuzz_hears(${name} NOTHING)
  assay_together(${name})
  # A fixed RapidCheck seed: a change is judged on the same cases as the one before it. New cases come
  # from `assay check --seed`, the fuzzers, or the test binary run by hand.
  set(filter)
  if(ARG_SLOW AND NOT ASSAY_SLOW_TESTS)
    string(JOIN ":" filter ${ARG_SLOW})
    set(filter TEST_FILTER "-${filter}")
  endif()
  gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 600 ${filter}
                       PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 3600
                                  ENVIRONMENT "RC_PARAMS=seed=20261120")
endfunction()
