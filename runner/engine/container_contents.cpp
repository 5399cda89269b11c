#include "runner/engine/container_contents.hpp"

#include <poll.h>
#include <algorithm>
#include <array>
#include <set>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "base/process.hpp"
#include "base/scratch_folder.hpp"
#include "base/size_limits.hpp"
#include "base/tar.hpp"
#include "base/text.hpp"
#include "recipes/logins.hpp"
#include "recipes/resolve/debian_control.hpp"
#include "runner/engine/engine.hpp"
#include "runner/record/secrets.hpp"
#include "runner/runtime_variables.hpp"

namespace mlenv {
namespace {

using nlohmann::json;

constexpr std::size_t kMostRecords = 50'000;
constexpr std::uint64_t kMostRecordBytes = 256 * size_limit::kMiB;  ///< of all together
constexpr std::size_t kLongestPath = 2000;

/// Reads a pipe whose writer may hang.
class PatientSource final : public Source {
 public:
  PatientSource(int fd, std::string engine) : fd_(fd), engine_(std::move(engine)) {}
  std::size_t read(ByteSpan out) override {
    pollfd one{fd_, POLLIN, 0};
    const auto limit = std::chrono::milliseconds(kEngineAnswer).count();
    if (::poll(&one, 1, static_cast<int>(limit)) == 0) {
      throw failure("engine-down", "{} sent nothing for {} seconds", engine_,
                    kEngineAnswer.count());
    }
    return FdSource{fd_}.read(out);
  }

 private:
  int fd_;
  std::string engine_;
};

/// What of a container's files is looked at, and how much of each.
struct WantedRecord {
  bool content = false;  ///< else its name alone
  std::uint64_t limit = size_limit::kPyproject;
};

std::optional<WantedRecord> wanted_record(const std::string& path) {
  constexpr std::array<std::string_view, 2> kReleases = {"etc/os-release", "usr/lib/os-release"};
  if (std::find(kReleases.begin(), kReleases.end(), path) != kReleases.end())
    return WantedRecord{true};
  if (path == kDpkgStatus || path == "var/lib/apt/extended_states") {
    return WantedRecord{true, 64 * size_limit::kMiB};
  }
  const fs::path place(path);
  const std::string name = place.filename().string();
  if (name == "pyvenv.cfg") return WantedRecord{true};
  const fs::path above = place.parent_path();
  if (above.filename() == "conda-meta") {
    return name.ends_with(".json") ? std::optional(WantedRecord{}) : std::nullopt;
  }
  const auto holds_packages = [](const fs::path& folder) {
    return folder.filename() == "site-packages" || folder.filename() == "dist-packages";
  };
  if (above.extension() == ".dist-info" && holds_packages(above.parent_path())) {
    if (name == "INSTALLER" || name == "direct_url.json") return WantedRecord{true};
    if (name == "METADATA") return WantedRecord{};  // that it is installed
  }
  if (holds_packages(above) && (name.ends_with(".egg-link") || name.starts_with("__editable__"))) {
    return WantedRecord{};
  }
  return std::nullopt;
}

std::string content_of(Source& data, std::uint64_t limit, const std::string& path) {
  std::string text;
  std::array<std::byte, 64 * size_limit::kKiB> part{};
  for (std::size_t read = data.read(part); read > 0; read = data.read(part)) {
    text.append(reinterpret_cast<const char*>(part.data()), read);
    if (text.size() > limit) {
      throw failure("too-large", "`/{}` of the container is larger than {} MiB", path,
                    limit / size_limit::kMiB);
    }
  }
  return text;
}

/// Only files and folders are made, so that nothing of the archive can lead out of `folder`.
void keep_records(Source& archive, const fs::path& folder) {
  std::size_t count = 0;
  std::uint64_t bytes = 0;
  read_tar(archive, [&](const TarEntry& entry, Source& data) {
    if (entry.type != TarEntry::Type::file || entry.path.size() > kLongestPath) return;
    const std::optional<WantedRecord> what = wanted_record(entry.path);
    if (!what) return;
    const std::string text = what->content ? content_of(data, what->limit, entry.path) : "";
    bytes += text.size();
    if (++count > kMostRecords || bytes > kMostRecordBytes) {
      throw failure("too-large", "the container has more than {} records of packages",
                    kMostRecords);
    }
    const fs::path place = folder / entry.path;
    make_folders(place.parent_path());
    write_file(place, text, /*durable=*/false);
  });
}

/// nullopt where the engine has none of that kind and name.
std::optional<json> inspected(const ContainerEngine& engine, const char* kind,
                              const std::string& name) {
  const Captured answer = ask(engine, {kind, "inspect", "--", name}, kEngineAnswer);
  const json all = json::parse(answer.out, nullptr, false);
  if (answer.exit.code != 0 || !all.is_array() || all.size() != 1 || !all.front().is_object()) {
    return std::nullopt;
  }
  return all.front();
}

json member(const json& object, const char* name) {
  if (!object.is_object()) return {};
  const auto found = object.find(name);
  return found == object.end() ? json() : *found;
}

/// Podman before 5 writes an entrypoint as one text.
std::vector<std::string> texts(const json& list) {
  std::vector<std::string> all;
  if (list.is_string()) {
    for (const std::string_view word : split(list.get_ref<const std::string&>(), ' ')) {
      if (!word.empty()) all.emplace_back(word);
    }
  }
  if (!list.is_array()) return all;
  for (const json& one : list) {
    if (one.is_string()) all.push_back(one.get<std::string>());
  }
  return all;
}

bool is_of_every_container(std::string_view name) {
  return name == "HOME" || name == "HOSTNAME" || name == "TERM" || name == "container";
}

void read_variables(const json& own, const json& of_image, ContainerContents& contents) {
  const std::vector<std::string> built = texts(member(of_image, "Env"));
  const std::set<std::string> known(built.begin(), built.end());
  for (const std::string& variable : texts(member(own, "Env"))) {
    const std::size_t equal = variable.find('=');
    if (equal == std::string::npos) continue;
    const std::string name = variable.substr(0, equal);
    const std::string value = variable.substr(equal + 1);
    const bool secret = is_secret_name(name) || without_logins(value) != value;
    if (name == "PATH") {
      for (const std::string_view folder : split(value, ':')) contents.path.emplace_back(folder);
    } else if (!secret && known.contains(variable)) {
      contents.env.emplace_back(name, value);
    } else if (secret || !is_of_every_container(name)) {
      contents.withheld.push_back(name);
    }
  }
}

void read_settings(const json& own, const json& of_image, ContainerContents& contents) {
  read_variables(own, of_image, contents);
  contents.workdir = text_of(own, "WorkingDir");
  contents.command = texts(member(own, "Entrypoint"));
  for (std::string& word : texts(member(own, "Cmd"))) contents.command.push_back(std::move(word));
}

/// Writes a container's files as a tar to us; ended with the object.
class ContainerExport {
 public:
  ContainerExport(const ContainerEngine& engine, const std::string& container)
      : engine_(engine), pipe_(make_pipe()) {
    const Fd messages = open_file(words(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    Command command{Purpose{"engine-export"}};
    command.env = runtime_variables(Starts::engine);
    command.argv = {engine.program, engine.is_podman() ? "container" : "export"};
    if (engine.is_podman()) command.argv.emplace_back("export");
    command.argv.insert(command.argv.end(), {"--", container});
    command.stdout_fd = pipe_.write_end.get();
    command.stderr_fd = messages.get();
    child_.emplace(command);
    pipe_.write_end.reset();
  }

  void keep_below(const fs::path& folder) {
    try {
      PatientSource archive{pipe_.read_end.get(), engine_.name};
      keep_records(archive, folder);
      std::array<std::byte, 64 * size_limit::kKiB> rest{};
      while (archive.read(rest) > 0) {
      }
    } catch (const Error& error) {
      if (error.code() != "bad-tar") throw;
      const std::optional<Exit> exit = child_->wait(kEngineAnswer);
      if (exit && exit->code != 0) throw not_exported();
      throw;
    }
    const std::optional<Exit> exit = child_->wait(kEngineAnswer);
    if (!exit || exit->code != 0) throw not_exported();
  }

 private:
  fs::path words() const { return scratch_.path() / "words"; }
  Error not_exported() const {
    return failure("engine-image", "{} does not export the container", engine_.name)
        .because(std::string(trim(read_file(words()))));
  }

  const ContainerEngine& engine_;
  ScratchFolder scratch_;
  Pipe pipe_;
  std::optional<Child> child_;
};

/// Made for an image, and gone with the object.
class MadeContainer {
 public:
  MadeContainer(const ContainerEngine& engine, const std::string& image) : engine_(engine) {
    const Captured made =
        ask(engine, {"create", "--network", "none", "--entrypoint", "/bin/true", "--", image},
            kEngineAnswer);
    id_ = trim(made.out);
    if (made.exit.code == 0 && !id_.empty()) return;
    throw failure("engine-image", "{} makes no container of `{}`", engine.name, image)
        .because(std::string(trim(made.err)));
  }
  MadeContainer(const MadeContainer&) = delete;
  MadeContainer& operator=(const MadeContainer&) = delete;
  ~MadeContainer() {
    try {
      (void)ask(engine_, {"rm", "--force", "--", id_}, kEngineAnswer);
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch): it was never started
    }
  }
  const std::string& id() const { return id_; }

 private:
  const ContainerEngine& engine_;
  std::string id_;
};

Error no_such(const NamedContainer& named) {
  return usage_error("source-invalid", "{} has no container and no image `{}`", named.engine,
                     named.name)
      .hint(fmt::format("`{} ps --all` lists containers, `{} images` images", named.engine,
                        named.engine));
}

}  // namespace

std::optional<NamedContainer> NamedContainer::parse(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || !is_engine(text.substr(0, colon))) return std::nullopt;
  return NamedContainer{std::string(text.substr(0, colon)), std::string(text.substr(colon + 1))};
}

ContainerContents read_container(const NamedContainer& named, const fs::path& folder) {
  if (named.name.empty()) {
    throw usage_error("source-invalid", "`{}:` names no container", named.engine)
        .hint(fmt::format("write `{}:NAME`, of a container or an image", named.engine));
  }
  const ContainerEngine engine = find_engine(named.engine);
  ContainerContents contents;
  contents.shown = named.engine + ":" + named.name;
  contents.folder = folder;
  if (const auto container = inspected(engine, "container", named.name)) {
    const auto image = inspected(engine, "image", text_of(*container, "Image"));
    read_settings(member(*container, "Config"), member(image.value_or(json()), "Config"), contents);
    const json mounts = member(*container, "Mounts");
    for (const json& mount : mounts.is_array() ? mounts : json::array()) {
      if (mount.is_object()) contents.mounts.push_back(text_of(mount, "Destination"));
    }
    ContainerExport(engine, text_of(*container, "Id")).keep_below(folder);
    return contents;
  }
  const auto image = inspected(engine, "image", named.name);
  if (!image) throw no_such(named);
  const json config = member(*image, "Config");
  read_settings(config, config, contents);
  const MadeContainer made(engine, text_of(*image, "Id"));
  ContainerExport(engine, made.id()).keep_below(folder);
  return contents;
}

}  // namespace mlenv
