#include "base/archive_source.hpp"

#include <cerrno>
#include <utility>

#include <archive.h>

#include "base/error.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kArchiveBufferBytes = std::size_t{1} << 18;

using Archive = Owned<archive_read_free>::of<archive>;

locale_t c_locale() {
  // Lives as long as the program.
  static const locale_t locale = ::newlocale(LC_ALL_MASK, "C", nullptr);
  return locale;
}

std::string reason_text(const char* text) {
  return text != nullptr ? text : "the archive library does not say why";
}

}  // namespace

PlainNames::PlainNames() : before_(::uselocale(c_locale())) {}
PlainNames::~PlainNames() { ::uselocale(before_); }

struct ArchiveReader::State {
  State(Source& in, std::string error_code, std::string error_headline)
      : source(in),
        code(std::move(error_code)),
        headline(std::move(error_headline)),
        buffer(kArchiveBufferBytes),
        handle(archive_read_new()) {}

  static la_ssize_t read(archive* handle, void* opaque, const void** block) noexcept {
    State& state = *static_cast<State*>(opaque);
    try {
      *block = state.buffer.data();
      return static_cast<la_ssize_t>(state.source.read(state.buffer));
    } catch (...) {
      state.parked = std::current_exception();
      archive_set_error(handle, EIO, "the input cannot be read");
      return ARCHIVE_FATAL;
    }
  }

  Source& source;
  std::string code;
  std::string headline;
  Bytes buffer;
  std::exception_ptr parked;
  std::string doubt;  ///< what `open` complained about without failing
  Archive handle;
};

ArchiveReader::ArchiveReader(Source& in, std::string code, std::string headline)
    : state_(std::make_unique<State>(in, std::move(code), std::move(headline))) {
  if (!state_->handle) throw Error{Kind::internal, "no-memory", "no memory to read an archive"};
}
ArchiveReader::~ArchiveReader() = default;

archive* ArchiveReader::get() const { return state_->handle.get(); }

void ArchiveReader::open() {
  const PlainNames plain;
  const int result = archive_read_open(get(), state_.get(), nullptr, &State::read, nullptr);
  if (result < ARCHIVE_WARN) fail();
  // An error in the first bytes looks like an empty archive to libarchive.
  if (archive_errno(get()) != 0) state_->doubt = reason_text(archive_error_string(get()));
}

archive_entry* ArchiveReader::next() {
  const PlainNames plain;
  archive_entry* entry = nullptr;
  const int result = archive_read_next_header(get(), &entry);
  if (result == ARCHIVE_EOF) {
    if (state_->parked || archive_errno(get()) != 0 || !state_->doubt.empty()) fail();
    return nullptr;
  }
  state_->doubt.clear();
  // A warning is about a name that is not in the locale's charset, or about an attribute unknown.
  if (result < ARCHIVE_WARN) fail();
  return entry;
}

void ArchiveReader::fail() const {
  if (state_->parked) std::rethrow_exception(state_->parked);
  throw Error{Kind::failed, state_->code, state_->headline}.because(
      state_->doubt.empty() ? reason_text(archive_error_string(get())) : state_->doubt);
}

std::size_t ArchiveData::read(ByteSpan out) {
  const la_ssize_t count = archive_read_data(reader_.get(), out.data(), out.size());
  if (count < 0) reader_.fail();
  return static_cast<std::size_t>(count);
}

}  // namespace mlenv
