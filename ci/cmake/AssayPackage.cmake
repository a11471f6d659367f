# SPDX-License-Identifier: Apache-2.0
# `cpack -G DEB` in a build folder (ci/packages.sh does, and tries them):
#   libassay-NAME  libraries, headers, CMake and pkg-config files; NAME is cuda where the CUDA kernels were built,
#                  else simt
#   assay          the program, the kept findings, how a plugin is written
set(kernels_package libassay-${pkgconfig_library})
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME assay)
set(CPACK_PACKAGE_VENDOR assay)
set(CPACK_PACKAGE_CONTACT "The authors of assay <assay@localhost>" CACHE STRING "Maintainer of packages")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL kernels)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
# Which libraries a program needs, and of which version, is read from its file.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)

set(CPACK_COMPONENT_KERNELS_DESCRIPTION "Attention kernels behind a C ABI
Decode attention over paged KV caches, cascades over shared prefixes, and merges
of attention states: libraries, headers, CMake and pkg-config files.")
set(CPACK_DEBIAN_KERNELS_PACKAGE_NAME ${kernels_package})
set(CPACK_DEBIAN_KERNELS_PACKAGE_SECTION libdevel)
if(ASSAY_HARNESS)
  list(APPEND CPACK_COMPONENTS_ALL harness)
  set(CPACK_COMPONENT_HARNESS_DESCRIPTION "Checks attention kernels against what must hold
Draws cases, judges the outputs of a kernel by certified bounds, and prints the
smallest case that fails. Kernels may be a shared library or a Python function.")
  set(CPACK_DEBIAN_HARNESS_PACKAGE_NAME assay)
  set(CPACK_DEBIAN_HARNESS_PACKAGE_SECTION devel)
  # Headers to write a plugin with; `assay gate` asks git and builds what it is told to.
  set(CPACK_DEBIAN_HARNESS_PACKAGE_RECOMMENDS "${kernels_package} (= ${PROJECT_VERSION}), git, cmake, ninja-build, g++")
  # What programs need that link assay::oracle.
  set(CPACK_DEBIAN_KERNELS_PACKAGE_SUGGESTS "libmpfi-dev, libmpfr-dev, libgmp-dev, libboost-dev")
endif()

# Debian looks for both in a folder named after the package.
file(ARCHIVE_CREATE OUTPUT ${PROJECT_BINARY_DIR}/changelog.gz PATHS ${PROJECT_SOURCE_DIR}/CHANGELOG.md
     FORMAT raw COMPRESSION GZip COMPRESSION_LEVEL 9)
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} upper)
  set(doc ${CMAKE_INSTALL_DATAROOTDIR}/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  install(FILES LICENSE DESTINATION ${doc} COMPONENT ${component} RENAME copyright)
  install(FILES ${PROJECT_BINARY_DIR}/changelog.gz DESTINATION ${doc} COMPONENT ${component})
endforeach()
include(CPack)
