#include "builder/source_layout.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <cerrno>
#include <deque>
#include <vector>

#include "base/size_limits.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr int kMostHops = 40;               // as the kernel follows (path_resolution(7))
constexpr std::size_t kLongestPath = 4095;  // PATH_MAX less its end
constexpr std::size_t kLongestName = 255;   // NAME_MAX

/// Whether a file system takes it.
bool is_too_long(std::string_view path) {
  if (path.size() > kLongestPath) return true;
  const auto parts = split(path, '/');
  return std::any_of(parts.begin(), parts.end(),
                     [](std::string_view part) { return part.size() > kLongestName; });
}

void set_source_mode(const fs::path& path, mode_t mode) {
  if (::chmod(path.c_str(), mode) != 0) throw os_error(errno, "cannot write `{}`", path.string());
}

bool is_within(const std::string& path, const std::string& folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

std::string first_part(const std::string& path) { return path.substr(0, path.find('/')); }

}  // namespace

Error bad_source(const std::string& file, std::string why) {
  return failure("bad-source", "`{}` cannot be unpacked", file).because(std::move(why));
}

SourceLayout::SourceLayout(fs::path folder, std::string file)
    : folder_(std::move(folder)), file_(std::move(file)) {
  make_folders(folder_);
}

/// Of macOS's tar and Finder, and of git's archives.
bool SourceLayout::is_beside(const std::string& path) {
  const std::string first = first_part(path);
  return first.starts_with("._") || first == ".DS_Store" || first == "__MACOSX" ||
         (path == first && first == "pax_global_header");
}

void SourceLayout::count_entry() {
  if (++entries_ <= size_limit::kSourceEntries) return;
  throw failure("too-large", "`{}` holds more than {} files and folders", file_,
                size_limit::kSourceEntries);
}

void SourceLayout::count_bytes(std::uint64_t more) {
  bytes_ += more;
  if (bytes_ <= size_limit::kSourceTree) return;
  throw failure("too-large", "`{}` unpacks to more than {} bytes", file_, size_limit::kSourceTree);
}

/// Where the path lies, its folder made.
fs::path SourceLayout::place(const std::string& path) {
  count_entry();
  if (is_too_long(path)) throw refused("a name in it is longer than a file system takes");
  const std::string first = first_part(path);
  if (top_.empty()) top_ = first;
  if (first != top_) throw refused("it holds more than one folder");
  if (path == first) return folder_;
  for (std::size_t slash = path.find('/'); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string above = path.substr(0, slash);
    if (links_.contains(above)) throw refused(fmt::format("`{}` is in it as two things", above));
  }
  const fs::path to = folder_ / path.substr(first.size() + 1);
  std::error_code error;
  fs::create_directories(to.parent_path(), error);
  if (error == std::errc::not_a_directory || error == std::errc::file_exists) {
    throw refused(fmt::format("`{}` lies in what is a file", path));
  }
  if (error) make_folders(to.parent_path());
  return to;
}

/// The same for what is no folder.
fs::path SourceLayout::free_place(const std::string& path) {
  if (path.find('/') == std::string::npos) {
    throw refused(fmt::format("`{}` lies beside its folder, or there is none", path));
  }
  fs::path to = place(path);
  if (fs::is_directory(fs::symlink_status(to)) || links_.contains(path)) {
    throw refused(fmt::format("`{}` is in it as two things", path));
  }
  return to;
}

void SourceLayout::add_folder(const std::string& path) {
  if (is_beside(path)) return;
  const fs::path to = place(path);
  if (fs::is_regular_file(fs::symlink_status(to)) || links_.contains(path)) {
    throw refused(fmt::format("`{}` is in it as two things", path));
  }
  make_folders(to);
}

void SourceLayout::add_file(const std::string& path, bool executable, const Write& write) {
  if (is_beside(path)) return;
  const fs::path to = free_place(path);
  const Fd out = open_file(to, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
  FunctionSink counted{[&](ByteView bytes) {
    count_bytes(bytes.size());
    write_all(out.get(), bytes);
  }};
  write(counted);
  set_source_mode(to, executable ? 0755 : 0644);
}

void SourceLayout::add_link(const std::string& path, const std::string& target) {
  if (is_beside(path)) return;
  if (is_too_long(target)) throw refused("a link in it is longer than a file system takes");
  const fs::path to = free_place(path);
  if (fs::exists(fs::symlink_status(to))) {
    throw refused(fmt::format("`{}` is in it as two things", path));
  }
  links_[path] = target;
}

void SourceLayout::add_hard_link(const std::string& path, const std::string& target) {
  if (is_beside(path)) return;
  if (is_too_long(target)) throw refused("a link in it is longer than a file system takes");
  if (links_.contains(target)) {
    add_link(path, "/" + target);
    return;
  }
  const fs::path to = free_place(path);
  const bool inside = is_within(target, top_);
  const fs::path from = inside ? folder_ / target.substr(top_.size() + 1) : fs::path{};
  if (!inside || !fs::is_regular_file(fs::symlink_status(from))) {
    throw refused(fmt::format("`{}` is a link to `{}`, which is no file in it", path, target));
  }
  if (from != to) copy_file(from, to);
}

/// The path in the archive that a link leads to, links on the way followed, too; whether anything
/// is there or not. Hard links to links are kept as `/` and the path.
std::string SourceLayout::follow(const std::string& link) const {
  std::deque<std::string> rest;
  for (const std::string_view part : split(link, '/')) rest.emplace_back(part);
  std::vector<std::string> at;
  for (int hops = 0; !rest.empty();) {
    const std::string part = std::move(rest.front());
    rest.pop_front();
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      if (at.empty()) throw refused(fmt::format("the link `{}` leads out of it", link));
      at.pop_back();
      continue;
    }
    at.push_back(part);
    const auto found = links_.find(join(at, "/"));
    if (found == links_.end()) continue;
    if (++hops > kMostHops) throw refused(fmt::format("the link `{}` leads in a circle", link));
    const std::string& target = found->second;
    at.pop_back();
    const bool is_hard = target.starts_with('/') && links_.contains(target.substr(1));
    if (target.starts_with('/') && !is_hard) {
      throw refused(fmt::format("the link `{}` leads out of it", link));
    }
    if (is_hard) at.clear();
    const auto parts = split(target, '/');
    for (auto one = parts.rbegin(); one != parts.rend(); ++one) rest.emplace_front(*one);
  }
  const std::string path = join(at, "/");
  if (path != top_ && !is_within(path, top_)) {
    throw refused(fmt::format("the link `{}` leads out of it", link));
  }
  return path;
}

bool SourceLayout::waits_in(const std::string& folder) const {
  const auto next = waiting_.lower_bound(folder + "/");
  return next != waiting_.end() && is_within(next->first, folder);
}

void SourceLayout::copy_file(const fs::path& from, const fs::path& to) {
  struct stat status {};
  if (::lstat(from.c_str(), &status) != 0) throw os_error(errno, "cannot read `{}`", from.string());
  count_bytes(static_cast<std::uint64_t>(status.st_size));
  const Fd in = open_file(from, O_RDONLY | O_NOFOLLOW);
  const Fd out = open_file(to, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
  FdSource source{in.get()};
  FdSink sink{out.get()};
  copy(source, sink);
  set_source_mode(to, status.st_mode & 0777U);
}

void SourceLayout::copy_folder(const fs::path& from, const fs::path& to) {
  make_folders(to);
  for (const fs::path& one : list_folder(from)) {
    count_entry();
    if (fs::is_directory(fs::symlink_status(one))) {
      copy_folder(one, to / one.filename());
    } else {
      copy_file(one, to / one.filename());
    }
  }
}

/// False where what it leads to is not whole yet.
bool SourceLayout::copy_target(const std::string& link) {
  const std::string& target = waiting_.at(link);
  if (waits_in(target) || waiting_.contains(target)) return false;
  const fs::path from = target == top_ ? folder_ : folder_ / target.substr(top_.size() + 1);
  const fs::path to = folder_ / link.substr(top_.size() + 1);
  const fs::file_status status = fs::symlink_status(from);
  if (fs::is_directory(status)) copy_folder(from, to);
  if (fs::is_regular_file(status)) copy_file(from, to);
  return true;
}

void SourceLayout::finish() {
  for (const auto& [link, target] : links_) waiting_[link] = follow(link);
  while (!waiting_.empty()) {
    std::vector<std::string> done;
    for (const auto& [link, target] : waiting_) {
      if (is_within(link, target)) continue;
      if (copy_target(link)) done.push_back(link);
    }
    if (done.empty()) {
      throw refused(fmt::format("the link `{}` leads in a circle", waiting_.begin()->first));
    }
    for (const std::string& link : done) waiting_.erase(link);
  }
}

}  // namespace mlenv
