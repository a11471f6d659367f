# SPDX-License-Identifier: Apache-2.0
# What the rooms of kernels/ hand to the libraries of kernels/api.
# assay_kernel_sources(FILE ...)   host side of a room: compiled once per library
# assay_kernel_instantiations(NAME LAUNCH)
#   kernels of a room: every line of its instantiations.def becomes one translation unit per target
#   that includes the room's LAUNCH header and expands the line by ASSAY_INSTANTIATE_<NAME>, so that
#   two cores share the work.
function(assay_kernel_sources)
  foreach(file IN LISTS ARGN)
    set_property(GLOBAL APPEND PROPERTY ASSAY_KERNEL_SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  endforeach()
endfunction()

function(assay_kernel_instantiations name launch)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS instantiations.def)
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  file(STRINGS instantiations.def lines REGEX "^ASSAY_INSTANTIATE")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE ".*\\((.*)\\)" "\\1" arguments "${line}")
    string(REGEX REPLACE "ASSAY_[A-Z0-9]+, " "" file "${arguments}")
    string(REPLACE ", " "_" file "${file}")
    string(TOLOWER "${name}_${file}" file)
    assay_kernel_stub(simt ${file}.cpp)
    if(NOT line MATCHES "_SIMT")
      assay_kernel_stub(cuda ${file}.cu)
    endif()
  endforeach()
endfunction()

# Makes the stub of the current line.
macro(assay_kernel_stub target file)
  set(stub ${CMAKE_CURRENT_BINARY_DIR}/${target}/${file})
  file(CONFIGURE OUTPUT ${stub} @ONLY CONTENT
"// Generated from @folder@/instantiations.def.
#include \"@folder@/@launch@\"
namespace assay::ASSAY_TARGET {
ASSAY_INSTANTIATE_@name@(@arguments@)
}
")
  set_property(GLOBAL APPEND PROPERTY ASSAY_KERNEL_STUBS_${target} ${stub})
endmacro()
