#include "builder/debian/package.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/text.hpp"
#include "builder/debian/beneath.hpp"

namespace mlenv::debian {
namespace {

constexpr std::uint64_t kControlLimit = std::uint64_t{64} << 20U;

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\n'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

/// Writes a package's data below one folder; nothing gets outside it.
class Staging {
 public:
  explicit Staging(const fs::path& folder) : root_(open_file(folder, O_PATH | O_DIRECTORY)) {}

  void put(const TarEntry& entry, Source& data) {
    if (entry.path == ".") return;
    const auto [parent, name] = place(entry.path);
    switch (entry.type) {
      case TarEntry::Type::folder:
        if (::mkdirat(parent, name.c_str(), 0755) != 0 && errno != EEXIST) fail(entry.path);
        return;
      case TarEntry::Type::file:
        put_file(entry, parent, name, data);
        return;
      case TarEntry::Type::symlink:
        if (::symlinkat(entry.link.c_str(), parent, name.c_str()) != 0) fail(entry.path);
        break;
      case TarEntry::Type::hardlink:
        link(entry, parent, name);
        return;
      case TarEntry::Type::fifo:
        if (::mkfifoat(parent, name.c_str(), 0600) != 0) fail(entry.path);
        break;
      default:
        throw failure("bad-deb", "`/{}` is a device node, which an image cannot bring", entry.path);
    }
    set_time(parent, name, entry.mtime);
  }

 private:
  [[noreturn]] static void fail(const std::string& path) {
    throw os_error(errno, "cannot unpack `/{}`", path);
  }

  /// Through no link: it could lead to a file of the machine.
  void link(const TarEntry& entry, int parent, const std::string& name) const {
    const Fd from = open_real_parent(root_.get(), entry.link);
    if (!from || ::linkat(from.get(), std::string(last_part(entry.link)).c_str(), parent,
                          name.c_str(), 0) != 0) {
      fail(entry.path);
    }
  }

  static void set_time(int parent, const std::string& name, std::int64_t mtime) {
    const std::array<timespec, 2> times{timespec{mtime, 0}, timespec{mtime, 0}};
    ::utimensat(parent, name.c_str(), times.data(), AT_SYMLINK_NOFOLLOW);
  }

  static void put_file(const TarEntry& entry, int parent, const std::string& name, Source& data) {
    const Fd file{
        ::openat(parent, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)};
    if (!file) fail(entry.path);
    FdSink sink{file.get()};
    copy(data, sink);
    const std::array<timespec, 2> times{timespec{entry.mtime, 0}, timespec{entry.mtime, 0}};
    if (::fchmod(file.get(), entry.mode & 07777U) != 0 ||
        ::futimens(file.get(), times.data()) != 0) {
      fail(entry.path);
    }
  }

  /// The parent folder, made when the archive does not name it, and the last part of `path`.
  std::pair<int, std::string> place(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return {root_.get(), path};
    const std::string folder = path.substr(0, slash);
    if (folder != parent_path_ || !parent_) {
      parent_ = open_real(root_.get(), folder, O_DIRECTORY);
      if (!parent_ && errno == ENOENT) {
        make_missing(folder);
        parent_ = open_real(root_.get(), folder, O_DIRECTORY);
      }
      if (!parent_) fail(path);
      parent_path_ = folder;
    }
    return {parent_.get(), path.substr(slash + 1)};
  }

  void make_missing(const std::string& folder) const {
    for (std::size_t end = folder.find('/'); end != std::string::npos;
         end = folder.find('/', end + 1)) {
      (void)::mkdirat(root_.get(), folder.substr(0, end).c_str(), 0755);
    }
    (void)::mkdirat(root_.get(), folder.c_str(), 0755);
  }

  Fd root_;
  Fd parent_;
  std::string parent_path_;
};

}  // namespace

Fields parse_stanza(std::string_view text) {
  Fields fields;
  std::string* last = nullptr;
  for (const std::string_view line : split(text, '\n')) {
    if (line.empty()) continue;
    if (line.front() == ' ' || line.front() == '\t') {
      if (last != nullptr) last->append("\n").append(trimmed(line));
      continue;
    }
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    last = &fields[to_lower(line.substr(0, colon))];
    *last = trimmed(line.substr(colon + 1));
  }
  return fields;
}

std::vector<std::vector<std::string>> parse_relation(std::string_view text) {
  std::vector<std::vector<std::string>> groups;
  for (const std::string_view group : split(text, ',')) {
    std::vector<std::string> names;
    for (const std::string_view alternative : split(group, '|')) {
      const std::string_view whole = trimmed(alternative);
      const std::string_view name = whole.substr(0, whole.find_first_of(" \t\n([:<"));
      if (!name.empty()) names.emplace_back(name);
    }
    if (!names.empty()) groups.push_back(std::move(names));
  }
  return groups;
}

std::string Package::field(const std::string& name_in_lower_case) const {
  const auto found = fields.find(name_in_lower_case);
  return found == fields.end() ? std::string() : found->second;
}

std::string Package::info_name() const {
  return field("multi-arch") == "same" ? name + ":" + architecture : name;
}

std::vector<std::string> Package::conffiles() const {
  std::vector<std::string> paths;
  const auto found = control.find("conffiles");
  if (found == control.end()) return paths;
  for (const std::string_view line : split(found->second.text, '\n')) {
    // A flag comes first; the only one is `remove-on-upgrade`, and such a file is not shipped.
    if (line.starts_with('/')) paths.emplace_back(trimmed(line));
  }
  return paths;
}

Package unpack_package(const fs::path& file, const fs::path& staging,
                       const std::set<std::string>* only) {
  Package package;
  Staging folder{staging};
  read_deb(
      file,
      [&](const TarEntry& entry, Source& data) {
        if (entry.type != TarEntry::Type::file) return;
        package.control[entry.path] = {entry.mode & 07777U, read_all(data, kControlLimit)};
      },
      [&](const TarEntry& entry, Source& data) {
        package.entries.push_back(entry);
        if (only == nullptr || only->contains(entry.path)) folder.put(entry, data);
      });
  const auto control = package.control.find("control");
  if (control == package.control.end()) {
    throw failure("bad-deb", "`{}` has no control file", file.string());
  }
  package.stanza = control->second.text;
  package.fields = parse_stanza(package.stanza);
  package.name = package.field("package");
  package.version = package.field("version");
  package.architecture = package.field("architecture");
  return package;
}

}  // namespace mlenv::debian
