// libarchive's way to any filter brings in the libraries of all; xz is the only one that is asked
// for (base/decompress.cpp), of streams that are known to be such.
#include <archive.h>

extern "C" int archive_read_append_filter(archive* reader, int code) {
  return code == ARCHIVE_FILTER_XZ ? archive_read_support_filter_xz(reader) : ARCHIVE_FATAL;
}
