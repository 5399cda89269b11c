#include "recipes/data_list.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/printable.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kHead = "mlenv data 1\n";

Error bad_list(std::string_view why) {
  return failure("bad-data", "the list of a data set's files cannot be read")
      .because(std::string(why));
}

/// The text up to `end`, which is taken away with it.
std::string_view take_until(std::string_view& rest, char end) {
  const std::size_t at = rest.find(end);
  if (at == std::string_view::npos) throw bad_list("it ends in the middle of a file");
  const std::string_view part = rest.substr(0, at);
  rest.remove_prefix(at + 1);
  return part;
}

DataFile take_file(std::string_view& rest) {
  const std::string_view size = take_until(rest, ' ');
  const std::string_view kind = take_until(rest, ' ');
  const std::string_view hex = take_until(rest, ' ');
  DataFile file{std::string(take_until(rest, '\0')), 0, kind == "x", Digest::from_hex(hex)};
  const auto [end, error] =
      std::from_chars(size.data(), size.data() + size.size(), file.size_bytes);
  const bool is_number = error == std::errc{} && end == size.data() + size.size();
  if (!is_number || (kind != "x" && kind != "-")) throw bad_list("a file of it has no size");
  return file;
}

/// Whatever follows such a path stays below the folder. Names of files may hold anything else.
bool is_plain_path(std::string_view path) {
  while (true) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

bool lists_path(const std::vector<DataFile>& sorted, std::string_view path) {
  const auto at =
      std::lower_bound(sorted.begin(), sorted.end(), path,
                       [](const DataFile& file, std::string_view one) { return file.path < one; });
  return at != sorted.end() && at->path == path;
}

/// `before` is that of the file before it, which has been checked; empty: there is none.
void check_order(std::string_view before, std::string_view path) {
  if (path > before) return;
  if (path == before) throw bad_list(fmt::format("`{}` comes twice", printable(path)));
  throw bad_list(fmt::format("`{}` comes too late: it is not sorted", printable(path)));
}

void check_paths(const std::vector<DataFile>& files) {
  if (files.size() == 1 && files.front().path.empty()) return;
  std::string_view before;
  for (const DataFile& file : files) {
    if (!is_plain_path(file.path)) {
      throw bad_list(fmt::format("`{}` is no path below a folder", printable(file.path)));
    }
    check_order(before, file.path);
    before = file.path;
  }
  std::string_view known;  // a folder that is no file, nor is any above it
  for (const DataFile& file : files) {
    const std::string_view folder = folder_of(file.path);
    if (folder == known) continue;
    for (std::string_view up = folder; !up.empty(); up = folder_of(up)) {
      if (lists_path(files, up)) {
        throw bad_list(fmt::format("`{}` lies beneath a file", printable(file.path)));
      }
    }
    known = folder;
  }
}

}  // namespace

std::uint64_t DataList::size_bytes() const {
  std::uint64_t sum = 0;
  for (const DataFile& file : files) sum += file.size_bytes;
  return sum;
}

Digest DataList::digest() const {
  if (files.size() == 1 && files.front().path.empty()) return files.front().digest;
  Sha256 list;
  for (const DataFile& file : files) {
    const std::string line = fmt::format("{}  {}", file.digest.hex(), file.path);
    list.write(as_bytes(line));
    list.write(as_bytes(std::string_view("\0", 1)));
  }
  return list.finish();
}

std::string render_data_list(const DataList& list) {
  std::string text{kHead};
  for (const DataFile& file : list.files) {
    text += fmt::format("{} {} {} {}", file.size_bytes, file.executable ? 'x' : '-',
                        file.digest.hex(), file.path);
    text += '\0';
  }
  return text;
}

DataList parse_data_list(std::string_view text) {
  if (!text.starts_with(kHead)) throw bad_list("it does not begin as one does");
  text.remove_prefix(kHead.size());
  DataList list;
  while (!text.empty()) list.files.push_back(take_file(text));
  check_paths(list.files);
  return list;
}

}  // namespace mlenv
