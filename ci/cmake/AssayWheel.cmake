# SPDX-License-Identifier: Apache-2.0
# What `pip install .` puts into the folder of the Python package: bin/assay and what it finds at run time, the
# libraries, each under one name (a wheel holds no links), and the C headers.
#
# With ASSAY_BUILT the files of that build folder are taken, and nothing is compiled:
#   pip install . --config-settings cmake.define.ASSAY_BUILT=$PWD/build/simt
set(ASSAY_BUILT "" CACHE PATH "A build folder whose program and libraries the wheel takes")

# assay_wheel_file(target file folder): one file, of this build or of ASSAY_BUILT, where it lies at `file`.
function(assay_wheel_file target file folder)
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
assay_wheel_file(assay assay bin)
assay_wheel_file(assay_judge libassay_judge.so lib)
foreach(name simt cuda)
  set(library kernels/api/libassay_${name}.so)
  if(TARGET assay_library_${name} OR EXISTS ${ASSAY_BUILT}/${library})
    assay_wheel_file(assay_library_${name} ${library} lib)
  endif()
endforeach()
install(FILES kernels/abi/assay.h kernels/abi/plugin.h kernels/abi/assay_judge.h DESTINATION include/assay)
install(DIRECTORY corpus/findings corpus/shapes DESTINATION share/assay FILES_MATCHING PATTERN *.case)
