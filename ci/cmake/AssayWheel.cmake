# SPDX-License-Identifier: Apache-2.0
# What `pip install .` puts into the folder of the Python package, each library under one name (a wheel holds no
# links). ASSAY_WHEEL lists its parts, or is `all`: those that this build has.
#   judge       libassay_judge and the C headers: all that verdicts on tensors need, and what is compiled by default
#   program     bin/assay, and what it finds at run time
#   simt, cuda  the kernels, on the CPU executor and on GPUs
#   judge_cuda  libassay_judge_cuda
#
# With ASSAY_BUILT the files of that build folder are taken, and nothing is compiled:
#   pip install . --config-settings cmake.define.ASSAY_WHEEL=all --config-settings cmake.define.ASSAY_BUILT=$PWD/build/simt
set(ASSAY_WHEEL judge CACHE STRING "Parts of the wheel, or all")
set(ASSAY_BUILT "" CACHE PATH "A build folder whose program and libraries the wheel takes")

# assay_wheel_part(part target file folder): one file, of this build or of ASSAY_BUILT, where it lies at `file`.
function(assay_wheel_part part target file folder)
  if(NOT part IN_LIST ASSAY_WHEEL)
    if(NOT ASSAY_WHEEL STREQUAL "all" OR NOT (TARGET ${target} OR EXISTS ${ASSAY_BUILT}/${file}))
      return()
    endif()
  endif()
  if(ASSAY_BUILT)
    file(REAL_PATH ${file} path BASE_DIRECTORY ${ASSAY_BUILT})
    if(NOT EXISTS ${path})
      message(FATAL_ERROR "ASSAY_BUILT: ${ASSAY_BUILT} has no ${file}: build its target ${target}")
    endif()
  else()
    set(path $<TARGET_FILE:${target}>)
    add_dependencies(assay_wheel ${target})
  endif()
  get_filename_component(name ${file} NAME)
  install(PROGRAMS ${path} DESTINATION ${folder} RENAME ${name})
  # CMake strips targets alone.
  install(CODE "if(CMAKE_INSTALL_DO_STRIP)
    execute_process(COMMAND \"${CMAKE_STRIP}\" \"\${CMAKE_INSTALL_PREFIX}/${folder}/${name}\")
  endif()")
endfunction()

add_custom_target(assay_wheel)
assay_wheel_part(judge assay_judge libassay_judge.so lib)
assay_wheel_part(program assay assay bin)
assay_wheel_part(simt assay_library_simt kernels/api/libassay_simt.so lib)
assay_wheel_part(cuda assay_library_cuda kernels/api/libassay_cuda.so lib)
assay_wheel_part(judge_cuda assay_judge_cuda libassay_judge_cuda.so lib)
if("judge" IN_LIST ASSAY_WHEEL OR ASSAY_WHEEL STREQUAL "all")
  install(FILES kernels/abi/assay.h kernels/abi/plugin.h kernels/abi/assay_judge.h DESTINATION include/assay)
endif()
if("program" IN_LIST ASSAY_WHEEL OR ASSAY_WHEEL STREQUAL "all")
  install(DIRECTORY corpus/findings corpus/shapes DESTINATION share/assay FILES_MATCHING PATTERN *.case)
endif()
