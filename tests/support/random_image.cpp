#include "tests/support/random_image.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/core.h>
#include <zlib.h>
#include <algorithm>
#include <random>
#include <stdexcept>

#include "base/handle.hpp"

namespace mlenv {
namespace {

using Writer = Owned<archive_write_free>::of<archive>;
using Entry = Owned<archive_entry_free>::of<archive_entry>;

void check(bool right, const char* what) {
  if (!right) throw std::runtime_error(what);
}

la_ssize_t append(archive* /*unused*/, void* out, const void* data, std::size_t size) {
  static_cast<std::string*>(out)->append(static_cast<const char*>(data), size);
  return static_cast<la_ssize_t>(size);
}

unsigned file_type(TarEntry::Type type) {
  switch (type) {
    case TarEntry::Type::folder:
      return AE_IFDIR;
    case TarEntry::Type::symlink:
      return AE_IFLNK;
    case TarEntry::Type::char_device:
      return AE_IFCHR;
    case TarEntry::Type::block_device:
      return AE_IFBLK;
    case TarEntry::Type::fifo:
      return AE_IFIFO;
    default:
      return AE_IFREG;
  }
}

TestEntry test_entry(TarEntry::Type type, std::string path) {
  TestEntry out;
  out.entry.type = type;
  out.entry.path = std::move(path);
  out.entry.mtime = 1'700'000'000;
  return out;
}

void write_entry(archive* tar, const TestEntry& test) {
  const TarEntry& from = test.entry;
  const Entry entry{archive_entry_new()};
  archive_entry_set_pathname(entry.get(), from.path.c_str());
  archive_entry_set_filetype(entry.get(), file_type(from.type));
  archive_entry_set_perm(entry.get(), from.mode);
  archive_entry_set_uid(entry.get(), static_cast<la_int64_t>(from.uid));
  archive_entry_set_gid(entry.get(), static_cast<la_int64_t>(from.gid));
  archive_entry_set_mtime(entry.get(), from.mtime, 0);
  archive_entry_set_size(entry.get(), static_cast<la_int64_t>(test.content.size()));
  if (from.type == TarEntry::Type::symlink)
    archive_entry_set_symlink(entry.get(), from.link.c_str());
  if (from.type == TarEntry::Type::hardlink) {
    archive_entry_set_hardlink(entry.get(), from.link.c_str());
  }
  archive_entry_set_rdevmajor(entry.get(), from.device_major);
  archive_entry_set_rdevminor(entry.get(), from.device_minor);
  for (const auto& [name, value] : from.xattrs) {
    archive_entry_xattr_add_entry(entry.get(), name.c_str(), value.data(), value.size());
  }
  check(archive_write_header(tar, entry.get()) == ARCHIVE_OK, "libarchive: header");
  const auto size = static_cast<la_ssize_t>(test.content.size());
  check(archive_write_data(tar, test.content.data(), test.content.size()) == size,
        "libarchive: data");
}

class Dice {
 public:
  explicit Dice(unsigned seed) : engine_(seed) {}
  std::size_t below(std::size_t limit) { return engine_() % limit; }
  std::string bytes(std::size_t count) {
    std::string out;
    // Runs, so that it compresses a little.
    while (out.size() < count) out.append(1 + below(7), static_cast<char>(below(256)));
    out.resize(count);
    return out;
  }

 private:
  std::mt19937 engine_;
};

/// A layer's bytes cut at random: parts that are literal, parts that lie in a wheel among other
/// bytes.
Spliced cut(Store& store, const std::string& blob, Dice& dice) {
  Spliced out;
  std::string wheel = dice.bytes(1000);
  std::size_t at = 0;
  while (at < blob.size()) {
    const std::size_t length = std::min(blob.size() - at, 1 + dice.below(2000));
    const std::string part = blob.substr(at, length);
    const bool literal = dice.below(2) == 0;
    std::string& home = literal ? out.literals : wheel;
    out.pieces.push_back({std::nullopt, home.size(), length});
    if (!literal) out.pieces.back().blob = Digest::of("later");
    home += part;
    if (!literal) wheel += dice.bytes(dice.below(50));
    at += length;
  }
  const Digest digest = store.put(wheel);
  for (Piece& piece : out.pieces) {
    if (piece.blob) piece.blob = digest;
  }
  return out;
}

std::vector<TestEntry> random_entries(Dice& dice, std::size_t number) {
  const std::string top = fmt::format("opt/layer{}", number);
  std::vector<TestEntry> out{test_folder("opt"), test_folder(top)};
  std::vector<std::string> folders{top};
  std::string last_file;
  for (std::size_t i = 0; i < 12; ++i) {
    const std::string path = fmt::format("{}/entry-{:03}", folders[dice.below(folders.size())], i);
    const std::size_t kind = dice.below(6);
    if (kind == 0) {
      out.push_back(test_folder(path, dice.below(2) == 0 ? 0755 : 0555));
      folders.push_back(path);
    } else if (kind == 1) {
      out.push_back(test_symlink(path, "../somewhere/" + std::to_string(i)));
    } else if (kind == 2 && !last_file.empty()) {
      out.push_back(test_hardlink(path, last_file));
    } else {
      const std::uint32_t modes[] = {0644, 0755, 0600, 04755};
      out.push_back(test_file(path, dice.bytes(dice.below(40'000)), modes[dice.below(4)]));
      last_file = path;
    }
  }
  return out;
}

Layer put_layer(Store& store, const std::string& tar, const std::string& title, Dice* dice) {
  const std::string blob = test_gzip(tar);
  const Digest digest = Digest::of(blob);
  if (dice != nullptr) {
    store.put_spliced(digest, blob.size(), cut(store, blob, *dice));
  } else {
    store.put(blob);
  }
  return {{std::string(kLayerGzipType), digest, blob.size()}, Digest::of(tar), tar.size(), title};
}

}  // namespace

TestEntry test_folder(std::string path, std::uint32_t mode) {
  TestEntry out = test_entry(TarEntry::Type::folder, std::move(path));
  out.entry.mode = mode;
  return out;
}

TestEntry test_file(std::string path, std::string content, std::uint32_t mode) {
  TestEntry out = test_entry(TarEntry::Type::file, std::move(path));
  out.entry.mode = mode;
  out.content = std::move(content);
  return out;
}

TestEntry test_symlink(std::string path, std::string target) {
  TestEntry out = test_entry(TarEntry::Type::symlink, std::move(path));
  out.entry.mode = 0777;
  out.entry.link = std::move(target);
  return out;
}

TestEntry test_hardlink(std::string path, std::string target) {
  TestEntry out = test_entry(TarEntry::Type::hardlink, std::move(path));
  out.entry.link = std::move(target);
  return out;
}

std::string test_tar(const std::vector<TestEntry>& entries) {
  std::string out;
  const Writer tar{archive_write_new()};
  archive_write_set_format_pax_restricted(tar.get());
  archive_write_set_bytes_per_block(tar.get(), 0);
  check(archive_write_open(tar.get(), &out, nullptr, append, nullptr) == ARCHIVE_OK,
        "libarchive: open");
  for (const TestEntry& entry : entries) write_entry(tar.get(), entry);
  check(archive_write_close(tar.get()) == ARCHIVE_OK, "libarchive: close");
  return out;
}

std::string test_gzip(std::string_view content) {
  z_stream stream{};
  constexpr int kGzipWindow = 15 + 16;
  check(deflateInit2(&stream, 6, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) == Z_OK, "zlib");
  std::string out(deflateBound(&stream, content.size()), '\0');
  std::string in{content};
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const bool whole = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  out.resize(stream.total_out);
  deflateEnd(&stream);
  check(whole, "zlib: deflate");
  return out;
}

Layer put_layer(Store& store, const std::string& tar, const std::string& title, bool spliced) {
  Dice dice{1};
  return put_layer(store, tar, title, spliced ? &dice : nullptr);
}

Image random_image(Store& store, unsigned seed, std::size_t layers) {
  Dice dice{seed};
  std::vector<Layer> list;
  for (std::size_t i = 0; i < layers; ++i) {
    const std::string tar = test_tar(random_entries(dice, i));
    list.push_back(put_layer(store, tar, fmt::format("layer {}", i), i % 2 == 1 ? &dice : nullptr));
  }
  ImageConfig config;
  config.env = {"PATH=/usr/bin", "SEED=" + std::to_string(seed)};
  config.command = {"/bin/true"};
  config.workdir = "/opt";
  config.labels = {{"dev.mlenv.test", "yes"}};
  Image image = compose_image(config, list, 1'700'000'000);
  store.put_image(image);
  return image;
}

}  // namespace mlenv
