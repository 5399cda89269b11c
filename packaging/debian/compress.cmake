# Before the archive is made: manual pages and the changes compressed, as Debian has them.
set(share ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr/share)
file(GLOB pages ${share}/man/man1/*.1)
file(COPY ${CMAKE_CURRENT_LIST_DIR}/../../CHANGELOG.md DESTINATION ${share}/doc/mlenv)
file(RENAME ${share}/doc/mlenv/CHANGELOG.md ${share}/doc/mlenv/changelog)
execute_process(COMMAND gzip -9n ${pages} ${share}/doc/mlenv/changelog COMMAND_ERROR_IS_FATAL ANY)
