# `cmake --build build --target package` makes mlenv_VERSION_ARCHITECTURE.deb.
install(FILES packaging/apparmor/mlenv packaging/apparmor/mlenv-container DESTINATION ${CMAKE_INSTALL_DATADIR}/mlenv/apparmor)
install(FILES packaging/debian/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME mlenv)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_CONTACT "the mlenv maintainers <maintainers@mlenv.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "reproducible container images for machine learning")
set(CPACK_PACKAGE_DESCRIPTION "mlenv turns a short recipe into a pinned, reproducible container image,
runs it and pushes it, without a daemon and without root. Wheels and Debian
packages are locked by digest; wheels become layers as they are.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
get_property(late_packages GLOBAL PROPERTY MLENV_LATE_PACKAGES)
list(JOIN late_packages ", " late_packages)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "ca-certificates, ${late_packages}")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "runc | crun, python3-pip")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
  ${CMAKE_SOURCE_DIR}/packaging/debian/postinst
  ${CMAKE_SOURCE_DIR}/packaging/debian/prerm
  ${CMAKE_SOURCE_DIR}/packaging/debian/postrm)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/packaging/debian/compress.cmake)
include(CPack)
