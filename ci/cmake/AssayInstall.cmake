# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` writes: headers, the libraries of this build, and what find_package(assay) and
# pkg-config read (component kernels); the program and what it finds at run time (component harness). Paths are
# relative, so the installed tree can be moved.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/assay)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME kernels)

install(TARGETS assay_abi EXPORT assayTargets)
set_target_properties(assay_abi PROPERTIES EXPORT_NAME abi)
install(FILES kernels/abi/assay.h kernels/abi/plugin.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/assay)
set(installed_libraries)
foreach(name simt cuda)
  if(TARGET assay_library_${name})
    install(TARGETS assay_library_${name} EXPORT assayTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
    # One program links one of the two: they have the same entry points.
    set_target_properties(assay_library_${name} PROPERTIES EXPORT_NAME ${name}
      INTERFACE_ASSAY_TARGET ${name} COMPATIBLE_INTERFACE_STRING ASSAY_TARGET)
    set_property(TARGET assay_library_${name} APPEND PROPERTY EXPORT_PROPERTIES COMPATIBLE_INTERFACE_STRING)
    list(APPEND installed_libraries ${name})
  endif()
endforeach()
if(ASSAY_HARNESS)
  # For authors of plugins, beside the headers: the program and how a kernel is declared.
  install(TARGETS assay RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT harness)
  # The verdict on tensors of others, for C and for the Python package.
  install(TARGETS assay_judge LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT harness)
  if(TARGET assay_judge_cuda)
    install(TARGETS assay_judge_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT harness)
  endif()
  install(FILES kernels/abi/assay_judge.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/assay COMPONENT harness)
  install(DIRECTORY corpus/findings corpus/shapes DESTINATION ${CMAKE_INSTALL_DATADIR}/assay COMPONENT harness
          FILES_MATCHING PATTERN *.case)
  install(FILES properties/plugins/DECLARATION.md
          DESTINATION ${CMAKE_INSTALL_DOCDIR}/plugins COMPONENT harness)
  # Headers of the oracle include each other as oracle/... and the ABI as kernels/abi/...
  install(TARGETS assay_oracle EXPORT assayTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  set_target_properties(assay_oracle PROPERTIES EXPORT_NAME oracle)
  target_include_directories(assay_oracle INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/assay>)
  target_compile_features(assay_oracle INTERFACE cxx_std_20)
  target_compile_options(assay_oracle INTERFACE $<INSTALL_INTERFACE:-ffp-contract=off>)
  # By name where it is installed: the paths are those of this machine.
  get_target_property(libraries assay_oracle INTERFACE_LINK_LIBRARIES)
  foreach(name MPFI MPFR GMP)
    string(TOLOWER ${name} installed)
    string(REPLACE "${ASSAY_${name}}" "$<BUILD_INTERFACE:${ASSAY_${name}}>;$<INSTALL_INTERFACE:${installed}>"
           libraries "${libraries}")
  endforeach()
  set_property(TARGET assay_oracle PROPERTY INTERFACE_LINK_LIBRARIES ${libraries} assay_abi)
  install(DIRECTORY oracle DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/assay
          FILES_MATCHING PATTERN *.h PATTERN tests EXCLUDE)
  install(FILES kernels/abi/assay.h kernels/abi/plugin.h
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/assay/kernels/abi)
endif()

if(TARGET assay_arch)
  # What kernels of others are written with, and the executor that runs them. Headers include each other as kernels/...
  install(TARGETS assay_arch assay_simt EXPORT assayTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  set_target_properties(assay_arch PROPERTIES EXPORT_NAME arch)
  set_target_properties(assay_simt PROPERTIES EXPORT_NAME executor)
  target_include_directories(assay_arch INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/assay>)
  target_link_libraries(assay_arch INTERFACE assay_abi)
  # By name where it is installed: who uses nothing of this needs no Boost.
  set_property(TARGET assay_simt PROPERTY INTERFACE_LINK_LIBRARIES $<BUILD_INTERFACE:assay_strict>
    $<BUILD_INTERFACE:Boost::context> $<BUILD_INTERFACE:Threads::Threads>
    $<INSTALL_INTERFACE:boost_context> $<INSTALL_INTERFACE:pthread>)
  install(DIRECTORY kernels/arch kernels/simt DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/assay/kernels
          FILES_MATCHING PATTERN *.h PATTERN *.cuh PATTERN tests EXCLUDE)
endif()

install(EXPORT assayTargets NAMESPACE assay:: DESTINATION ${package_dir})
configure_package_config_file(ci/cmake/assayConfig.cmake.in assayConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(assayConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/assayConfig.cmake ${PROJECT_BINARY_DIR}/assayConfigVersion.cmake
        DESTINATION ${package_dir})
# pkg-config has one library: the CUDA kernels where they were built.
list(GET installed_libraries -1 pkgconfig_library)
file(RELATIVE_PATH pkgconfig_up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(ci/cmake/assay.pc.in assay.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/assay.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
include(AssayPackage)
