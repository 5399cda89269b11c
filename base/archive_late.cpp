// What is called of libarchive.
#include <array>
#include <cstdarg>
#include <cstdio>

#include <archive.h>
#include <archive_entry.h>

#include "base/late_library.hpp"

namespace {
mlenv::LateLibrary archive_library{MLENV_LATE_ARCHIVE};
}  // namespace

MLENV_LATE_1(archive_library, archive_entry_filetype)
MLENV_LATE_1(archive_library, archive_entry_gid)
MLENV_LATE_1(archive_library, archive_entry_hardlink)
MLENV_LATE_1(archive_library, archive_entry_mtime)
MLENV_LATE_1(archive_library, archive_entry_pathname)
MLENV_LATE_1(archive_library, archive_entry_perm)
MLENV_LATE_1(archive_library, archive_entry_rdevmajor)
MLENV_LATE_1(archive_library, archive_entry_rdevminor)
MLENV_LATE_1(archive_library, archive_entry_size)
MLENV_LATE_1(archive_library, archive_entry_sparse_count)
MLENV_LATE_3(archive_library, archive_entry_sparse_next)
MLENV_LATE_1(archive_library, archive_entry_sparse_reset)
MLENV_LATE_1(archive_library, archive_entry_symlink)
MLENV_LATE_1(archive_library, archive_entry_uid)
MLENV_LATE_4(archive_library, archive_entry_xattr_next)
MLENV_LATE_1(archive_library, archive_entry_xattr_reset)
MLENV_LATE_1(archive_library, archive_errno)
MLENV_LATE_1(archive_library, archive_error_string)
MLENV_LATE_2(archive_library, archive_read_append_filter)
MLENV_LATE_3(archive_library, archive_read_data)
MLENV_LATE_4(archive_library, archive_read_data_block)
MLENV_LATE_1(archive_library, archive_read_free)
MLENV_LATE_0(archive_library, archive_read_new)
MLENV_LATE_2(archive_library, archive_read_next_header)
MLENV_LATE_5(archive_library, archive_read_open)
MLENV_LATE_1(archive_library, archive_read_support_format_ar)
MLENV_LATE_1(archive_library, archive_read_support_format_empty)
MLENV_LATE_1(archive_library, archive_read_support_format_raw)
MLENV_LATE_1(archive_library, archive_read_support_format_tar)

extern "C" void late_set_error(archive* reader, int number, const char* format,
                               ...) __asm__("archive_set_error");
extern "C" __attribute__((format(printf, 3, 4))) void late_set_error(archive* reader, int number,
                                                                     const char* format, ...) {
  MLENV_LATE_FUNCTION(archive_library, archive_set_error);
  std::array<char, 1024> text{};
  std::va_list rest;
  va_start(rest, format);
  (void)std::vsnprintf(text.data(), text.size(), format, rest);
  va_end(rest);
  function(reader, number, "%s", text.data());
}
