#pragma once
// libarchive read from a Source: callbacks that let no exception through C code, errors as ours,
// and names as the bytes that are in the archive whatever the locale.
#include <memory>
#include <string>

#include <locale.h>  // NOLINT(modernize-deprecated-headers): newlocale is POSIX's

#include "base/bytes.hpp"
#include "base/handle.hpp"

struct archive;
struct archive_entry;

namespace mlenv {

class ArchiveReader;

/// The content of the entry that `next` gave last.
class ArchiveData final : public Source {
 public:
  explicit ArchiveData(ArchiveReader& reader) : reader_(reader) {}
  std::size_t read(ByteSpan out) override;

 private:
  ArchiveReader& reader_;
};

/// The thread's locale is C while this lives: libarchive converts names from UTF-8 to the locale's
/// charset, normalising them on the way, and keeps the bytes as they are where it cannot.
class PlainNames {
 public:
  PlainNames();
  PlainNames(const PlainNames&) = delete;
  PlainNames& operator=(const PlainNames&) = delete;
  ~PlainNames();

 private:
  locale_t before_;
};

class ArchiveReader {
 public:
  /// Errors are thrown with `code` and `headline`; libarchive's own words become the cause.
  ArchiveReader(Source& in, std::string code, std::string headline);
  ArchiveReader(const ArchiveReader&) = delete;
  ArchiveReader& operator=(const ArchiveReader&) = delete;
  ~ArchiveReader();

  /// For choosing formats and filters, before `open`.
  archive* get() const;
  void open();
  /// The next entry, or null at the end.
  archive_entry* next();
  ArchiveData data() { return ArchiveData{*this}; }
  [[noreturn]] void fail() const;

 private:
  friend class ArchiveData;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace mlenv
