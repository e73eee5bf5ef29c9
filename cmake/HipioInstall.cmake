# What `cmake --install` puts where, and the same loader script for the build tree.
#
# The Open MPI component goes to a folder of its own, not among Open MPI's: installing hipio changes
# nothing for anyone until they ask for it, and a package manager's files stay its own.
set(HIPIO_COMPONENT_DIR ${CMAKE_INSTALL_LIBDIR}/hipio/openmpi)

if(TARGET mca_io_hipio)
  file(RELATIVE_PATH hipio_lib_from_component
    /${HIPIO_COMPONENT_DIR} /${CMAKE_INSTALL_LIBDIR})
  set_target_properties(mca_io_hipio PROPERTIES
    INSTALL_RPATH "$ORIGIN/${hipio_lib_from_component}")
  install(TARGETS mca_io_hipio LIBRARY DESTINATION ${HIPIO_COMPONENT_DIR})

  file(RELATIVE_PATH HIPIO_COMPONENT_FROM_SCRIPT
    /${CMAKE_INSTALL_BINDIR} /${HIPIO_COMPONENT_DIR})
  configure_file(${CMAKE_CURRENT_LIST_DIR}/hipio-env.in
    ${PROJECT_BINARY_DIR}/install/hipio-env @ONLY FILE_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  install(PROGRAMS ${PROJECT_BINARY_DIR}/install/hipio-env DESTINATION ${CMAKE_INSTALL_BINDIR})

  set(HIPIO_COMPONENT_FROM_SCRIPT adio)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/hipio-env.in
    ${PROJECT_BINARY_DIR}/hipio-env @ONLY FILE_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endif()

# The C library for other projects: pkg-config and find_package(hipio). Both find the prefix from
# where they lie, so that it can be moved.
set(hipio_pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
set(hipio_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hipio)
file(RELATIVE_PATH HIPIO_PREFIX_FROM_PC /${hipio_pc_dir} /)
configure_file(${CMAKE_CURRENT_LIST_DIR}/hipio.pc.in ${PROJECT_BINARY_DIR}/install/hipio.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/install/hipio.pc DESTINATION ${hipio_pc_dir})

include(CMakePackageConfigHelpers)
# Before 1.0 each minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/install/hipio-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/hipio-config.cmake
  ${PROJECT_BINARY_DIR}/install/hipio-config-version.cmake DESTINATION ${hipio_cmake_dir})
install(EXPORT hipio-targets NAMESPACE hipio:: DESTINATION ${hipio_cmake_dir})

install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
# As in the source tree, so that the pages find each other.
install(FILES CONTRIBUTING.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR}
  PATTERN CMakeLists.txt EXCLUDE PATTERN test EXCLUDE)
