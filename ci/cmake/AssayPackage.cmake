# SPDX-License-Identifier: Apache-2.0
# `cpack -G DEB` in a build folder (ci/packages.sh does, and tries them):
#   libassay-NAME  libraries, headers, CMake and pkg-config files; NAME is cuda where the CUDA kernels were built,
#                  else simt
#   assay          the program, the kept findings, how a plugin is written
set(kernels_package libassay-${pkgconfig_library})
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME assay)
set(CPACK_PACKAGE_VENDOR assay)
# Who packs says so: -DCPACK_PACKAGE_CONTACT="Name <address>".
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
Decode attention over paged KV caches, cascades over shared prefixes, and
merges of attention states: libraries, headers, CMake and pkg-config files.")
set(CPACK_DEBIAN_KERNELS_PACKAGE_NAME ${kernels_package})
set(CPACK_DEBIAN_KERNELS_PACKAGE_SECTION libdevel)
if(ASSAY_HARNESS)
  list(APPEND CPACK_COMPONENTS_ALL harness)
  set(CPACK_COMPONENT_HARNESS_DESCRIPTION "Checks attention kernels against what must hold
Draws cases, judges the outputs of a kernel by certified bounds, and prints
the smallest case that fails. Kernels may be a shared library or a Python
function.")
  set(CPACK_DEBIAN_HARNESS_PACKAGE_NAME assay)
  set(CPACK_DEBIAN_HARNESS_PACKAGE_SECTION devel)
  # Headers to write a plugin with; `assay gate` asks git and builds what it is told to.
  set(CPACK_DEBIAN_HARNESS_PACKAGE_RECOMMENDS "${kernels_package} (= ${PROJECT_VERSION}), git, cmake, ninja-build, g++")
  # What programs need that link assay::oracle or assay::arch.
  set(CPACK_DEBIAN_KERNELS_PACKAGE_SUGGESTS "libmpfi-dev, libmpfr-dev, libgmp-dev, libboost-dev, libboost-context-dev")
endif()

# What Debian asks of every package: whose it is, and what has changed.
set(debian ${PROJECT_BINARY_DIR}/debian)
file(CONFIGURE OUTPUT ${debian}/copyright @ONLY CONTENT
"Copyright: 2026 the authors of assay
License: Apache-2.0, on Debian systems in /usr/share/common-licenses/Apache-2.0
")
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(CONFIGURE OUTPUT ${debian}/changelog @ONLY CONTENT
"assay (@PROJECT_VERSION@) unstable; urgency=medium

  * See CHANGELOG.md of the sources.

 -- @CPACK_PACKAGE_CONTACT@  @now@
")
file(ARCHIVE_CREATE OUTPUT ${debian}/changelog.gz PATHS ${debian}/changelog
     FORMAT raw COMPRESSION GZip COMPRESSION_LEVEL 9 MTIME "1970-01-01")
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} upper)
  install(FILES ${debian}/copyright ${debian}/changelog.gz COMPONENT ${component}
          DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
endforeach()
# Who installs a library tells the loader.
file(CONFIGURE OUTPUT ${debian}/triggers CONTENT "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_KERNELS_PACKAGE_CONTROL_EXTRA ${debian}/triggers)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
include(CPack)
