#include "builder/wheel.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/printable.hpp"
#include "base/size_limits.hpp"
#include "builder/entry_points.hpp"
#include "builder/record.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kInstaller = "mlenv\n";
constexpr std::string_view kShebang = "#!/opt/venv/bin/python";

/// What the environment's own layer holds there; a wheel's file in its place would break it.
bool is_of_environment(std::string_view path) {
  const std::string_view name = path.substr(std::min(path.size(), kVenv.size() + 1));
  return name == "pyvenv.cfg" || name == "bin" || name == "lib" || name == "lib64" ||
         name == "bin/python" || name == "bin/python3" || name.starts_with("bin/python3.");
}

/// Reads a wheel's members into the places that installing gives them.
class Installation {
 public:
  Installation(int fd, const LockedWheel& wheel) : fd_(fd), wheel_(wheel) {
    members_ = while_doing("reading `" + wheel.file + "`", [&] { return read_zip_directory(fd); });
    find_dist_info();
  }

  std::vector<InstalledFile> files() {
    check_version();
    check_metadata();
    Record record =
        parse_record(member_text(dist_info_ + "/RECORD", size_limit::kWheelRecord), wheel_.file);
    check_record(record);
    for (const ZipMember& member : members_) place(member, record);
    add_entry_points(record);
    add_text(dist_info_ + "/INSTALLER", std::string(kInstaller), record);
    if (wheel_.requested) add_text(dist_info_ + "/REQUESTED", "", record);
    record[dist_info_ + "/RECORD"] = {};
    set(site(dist_info_ + "/RECORD"),
        {.path = {}, .mode = 0644, .member = {}, .text = render_record(record)});
    std::vector<InstalledFile> result;
    result.reserve(files_.size());
    for (auto& [path, file] : files_) {
      file.path = path;
      result.push_back(std::move(file));
    }
    return result;
  }

 private:
  void find_dist_info() {
    for (const ZipMember& member : members_) {
      const std::size_t slash = member.name.find('/');
      const std::string_view top = std::string_view(member.name).substr(0, slash);
      if (slash == std::string::npos || !top.ends_with(".dist-info") || top == dist_info_) continue;
      if (!dist_info_.empty()) throw bad_wheel(wheel_, "it holds two .dist-info folders");
      dist_info_ = top;
    }
    if (dist_info_.empty()) throw bad_wheel(wheel_, "it holds no .dist-info folder");
    const std::string stem =
        dist_info_.substr(0, dist_info_.size() - std::string_view(".dist-info").size());
    if (normalise_wheel_name(stem.substr(0, stem.rfind('-'))) != wheel_.name) {
      throw bad_wheel(
          wheel_, fmt::format("its `{}` is of another package than `{}`", dist_info_, wheel_.name));
    }
    data_ = stem + ".data/";
  }

  const ZipMember* find(std::string_view name) const {
    const auto at =
        std::lower_bound(members_.begin(), members_.end(), name,
                         [](const ZipMember& m, std::string_view n) { return m.name < n; });
    return at != members_.end() && at->name == name ? &*at : nullptr;
  }

  std::string member_text(const std::string& name,
                          std::uint64_t limit = size_limit::kWheelMetadata) const {
    const ZipMember* member = find(name);
    if (member == nullptr) throw bad_wheel(wheel_, fmt::format("it holds no `{}`", name));
    if (member->size_bytes > limit) {
      throw bad_wheel(wheel_, fmt::format("its `{}` has {} bytes; {} are the most", name,
                                          member->size_bytes, limit));
    }
    return read_zip_member(fd_, *member, limit);
  }

  /// Paths in RECORD may go up, as to `../../../bin/x`, but not out of the environment: who removes
  /// the package later removes what they name.
  void check_record(const Record& record) const {
    for (const auto& [path, entry] : record) {
      const std::string place = (fs::path(kSitePackages) / path).lexically_normal().string();
      const bool inside =
          place.size() > kVenv.size() + 1 && place.starts_with(kVenv) && place[kVenv.size()] == '/';
      if (inside && path.find('\0') == std::string::npos) continue;
      throw bad_wheel(wheel_,
                      fmt::format("its RECORD names `{}`, which is outside of the environment",
                                  printable(path)));
    }
  }

  void check_version() const {
    const std::string text = member_text(dist_info_ + "/WHEEL");
    constexpr std::string_view kKey = "Wheel-Version:";
    const std::size_t at = text.find(kKey);
    const std::size_t value =
        at == std::string::npos ? at : text.find_first_not_of(' ', at + kKey.size());
    if (value == std::string::npos || text.compare(value, 2, "1.") != 0) {
      throw bad_wheel(wheel_, "its Wheel-Version is not 1.x");
    }
  }

  /// What pip and importlib.metadata go by must be the package that the lock names.
  void check_metadata() const {
    const std::string content = member_text(dist_info_ + "/METADATA");
    std::string_view text = content;
    while (!text.empty() && text.front() != '\n' && text.front() != '\r') {
      const std::size_t end = std::min(text.find('\n'), text.size());
      constexpr std::string_view kKey = "Name:";
      if (text.starts_with(kKey)) {
        const std::string name{trim(text.substr(kKey.size(), end - kKey.size()))};
        if (normalise_wheel_name(name) == wheel_.name) return;
        throw bad_wheel(wheel_,
                        fmt::format("its METADATA is of `{}`, not of `{}`", name, wheel_.name));
      }
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    throw bad_wheel(wheel_, "its METADATA has no name");
  }

  static std::string site(std::string_view name) {
    return fmt::format("{}/{}", kSitePackages, name);
  }

  /// `lib64` is a link to `lib` in the environment.
  static std::string data_path(std::string_view name) {
    constexpr std::string_view kLib64 = "lib64/";
    if (!name.starts_with(kLib64)) return std::string(name);
    return "lib/" + std::string(name.substr(kLib64.size()));
  }

  void set(const std::string& path, InstalledFile file) {
    if (is_of_environment(path)) {
      throw bad_wheel(wheel_, fmt::format("it replaces `/{}`, which the environment has", path));
    }
    if (!files_.emplace(path, std::move(file)).second) {
      throw bad_wheel(wheel_, fmt::format("two of its files land on `/{}`", path));
    }
  }

  void add_text(const std::string& name, std::string text, Record& record) {
    record[name] = record_entry(text);
    files_.erase(site(name));
    set(site(name), {.path = {}, .mode = 0644, .member = {}, .text = std::move(text)});
  }

  void place(const ZipMember& member, Record& record) {
    if (utf8_fault(member.name) != std::string::npos) {
      throw bad_wheel(wheel_, "it holds a file whose name is not UTF-8");
    }
    if (member.is_folder() || member.name == dist_info_ + "/RECORD" ||
        member.name == dist_info_ + "/RECORD.jws" || member.name == dist_info_ + "/RECORD.p7s") {
      return;
    }
    const std::uint32_t mode = (member.mode & 0111U) != 0 ? 0755 : 0644;
    if (!member.name.starts_with(data_)) {
      set(site(member.name), {.path = {}, .mode = mode, .member = member, .text = {}});
      return;
    }
    place_data(member, mode, record);
  }

  void place_data(const ZipMember& member, std::uint32_t mode, Record& record) {
    const std::string_view rest = std::string_view(member.name).substr(data_.size());
    const std::size_t slash = rest.find('/');
    const std::string_view scheme = rest.substr(0, slash);
    if (slash == std::string_view::npos) throw bad_wheel(wheel_, "its .data folder holds a file");
    const std::string_view name = rest.substr(slash + 1);
    std::string path;
    if (scheme == "purelib" || scheme == "platlib") {
      path = site(name);
    } else if (scheme == "data") {
      path = fmt::format("{}/{}", kVenv, data_path(name));
    } else if (scheme == "headers") {
      path = fmt::format("{}/include/site/python3/{}/{}", kVenv, wheel_.name, name);
    } else if (scheme == "scripts") {
      return place_script(member, name, record);
    } else {
      throw bad_wheel(wheel_, fmt::format("`{}` is in no known installation scheme", member.name));
    }
    move_record(record, member.name, path);
    set(path, {.path = {}, .mode = mode, .member = member, .text = {}});
  }

  void place_script(const ZipMember& member, std::string_view name, Record& record) {
    const std::string path = fmt::format("{}/bin/{}", kVenv, name);
    std::string text;
    if (member.size_bytes < (1U << 20U)) text = read_zip_member(fd_, member);
    if (!text.starts_with("#!python")) {
      move_record(record, member.name, path);
      return set(path, {.path = {}, .mode = 0755, .member = member, .text = {}});
    }
    const std::size_t line_end = text.find('\n');
    text = std::string(kShebang) + (line_end == std::string::npos ? "" : text.substr(line_end));
    record.erase(member.name);
    record[record_path(path)] = record_entry(text);
    set(path, {.path = {}, .mode = 0755, .member = {}, .text = std::move(text)});
  }

  static void move_record(Record& record, const std::string& name, std::string_view path) {
    const auto entry = record.find(name);
    if (entry == record.end()) return;
    RecordEntry moved = entry->second;
    record.erase(entry);
    record[record_path(path)] = std::move(moved);
  }

  /// Paths in RECORD are relative to site-packages.
  static std::string record_path(std::string_view path) {
    if (path.starts_with(kSitePackages)) return std::string(path.substr(kSitePackages.size() + 1));
    return "../../../" + std::string(path.substr(kVenv.size() + 1));
  }

  void add_entry_points(Record& record) {
    const ZipMember* member = find(dist_info_ + "/entry_points.txt");
    if (member == nullptr) return;
    for (const EntryPoint& point : parse_entry_points(read_zip_member(fd_, *member), wheel_.file)) {
      const std::string path = fmt::format("{}/bin/{}", kVenv, point.name);
      std::string text = entry_point_script(point, kShebang);
      record[record_path(path)] = record_entry(text);
      files_.erase(path);
      set(path, {.path = {}, .mode = 0755, .member = {}, .text = std::move(text)});
    }
  }

  int fd_;
  const LockedWheel& wheel_;
  std::vector<ZipMember> members_;
  std::string dist_info_;
  std::string data_;
  std::map<std::string, InstalledFile> files_;
};

}  // namespace

Error bad_wheel(const LockedWheel& wheel, std::string reason) {
  return failure("bad-wheel", "`{}` cannot be installed", wheel.file).because(std::move(reason));
}

std::vector<InstalledFile> installed_files(int wheel_fd, const LockedWheel& wheel) {
  return Installation{wheel_fd, wheel}.files();
}

WheelFile with_files(WheelFile wheel) {
  if (wheel.files) return wheel;
  const Fd fd = open_file(wheel.path);
  wheel.files =
      std::make_shared<const std::vector<InstalledFile>>(installed_files(fd.get(), wheel.wheel));
  return wheel;
}

}  // namespace mlenv
