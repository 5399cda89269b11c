// Where the uv program comes from.
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <array>

#include "base/log.hpp"
#include "base/own_entries.hpp"
#include "base/process.hpp"
#include "base/zip.hpp"
#include "recipes/logins.hpp"
#include "recipes/resolve/host_logins.hpp"
#include "recipes/resolve/uv.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// Wheels of kUvPinned for Linux on x86_64 and aarch64; pip takes the one that suits the host.
constexpr std::array<std::string_view, 4> kUvDigests = {
    "e18a57b8b352eb7c8feb317b9f6f533c8f0ad9673fd6cf34bbe3cf1a9f6a8984",   // x86_64, glibc
    "29451c60f5e8b07403e0a175d5229efc36b0289b34143ff4aaa499a5dd52553a",   // x86_64, musl
    "5337c30bb893b4f9ce0ceb921ba2da0d13f649da644f40ad3bef84083bef0203",   // aarch64, glibc
    "0b3e8b1a4f5e405e31e2ff33de8af4744831e9f7338539671efbd8c3c94e791d"};  // aarch64, older, musl

constexpr std::uint64_t kLargestUv = std::uint64_t{512} << 20U;
constexpr std::string_view kInstallHint =
    "install uv so that it is on PATH, or a Python with pip (`apt-get install python3-pip`)";

/// `uv 0.13.8 (…)` → `0.13.8`; empty when it cannot be asked.
std::string uv_version(const fs::path& uv) {
  Command command{Purpose{"uv-version"}};
  command.argv = {uv.string(), "--version"};
  command.env = uv_environment();
  command.folder = "/";  // no settings of a project that mlenv was called in
  const Captured said = run_captured(command, std::chrono::seconds(30));
  std::string_view text = trim(said.out);
  if (said.exit.code != 0 || !text.starts_with("uv ")) return {};
  text.remove_prefix(3);
  return std::string(text.substr(0, text.find(' ')));
}

bool suits(const fs::path& uv, std::string_view version, const fs::path& cache) {
  return !version.empty() && std::is_gteq(compare_versions(version, kUvOldest)) &&
         uv_understands(uv, cache);
}

/// Where it is noted that this very file suits: asking it takes two starts of a program of 50 MB.
/// nullopt for a script, which may start another uv tomorrow.
std::optional<fs::path> note_of(const fs::path& uv, const fs::path& cache) {
  constexpr std::string_view kElf{ELFMAG, SELFMAG};
  const Fd file{::open(uv.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat status {};
  std::array<char, kElf.size()> magic{};
  if (::fstat(file.get(), &status) != 0 ||
      ::pread(file.get(), magic.data(), magic.size(), 0) != static_cast<ssize_t>(magic.size()) ||
      std::string_view(magic.data(), magic.size()) != kElf) {
    return std::nullopt;
  }
  const std::string what =
      fmt::format("{}\n{} {} {} {}.{}\n{}\n{}\n", uv.string(), status.st_dev, status.st_ino,
                  status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec, kUvOldest,
                  sample_interpreter(cache).parent_path().filename().string());
  return fs::absolute(cache) / "uv" / "suits" / Digest::of(what).brief();
}

std::optional<fs::path> uv_on_path(const fs::path& cache, Progress& progress) {
  std::optional<fs::path> found = find_program("uv");
  if (!found) return std::nullopt;
  const std::optional<fs::path> note = note_of(*found, cache);
  if (const std::optional<std::string> noted = note ? read_file_if_exists(*note) : std::nullopt) {
    log::debug("uv {} at {}, known to suit", trim(*noted), found->string());
    return found;
  }
  const std::string version = uv_version(*found);
  if (suits(*found, version, cache)) {
    log::debug("uv {} at {}", version, found->string());
    if (note) {
      make_own_folders(note->parent_path());
      write_file(*note, version + "\n", false);
    }
    return found;
  }
  progress.note(fmt::format("`{}` is uv {}, which does not fit; mlenv uses its own {}",
                            found->string(), version.empty() ? "of unknown version" : version,
                            kUvPinned));
  return std::nullopt;
}

/// The last line that pip wrote, which holds the reason.
std::string last_line(std::string_view text) {
  text = trim(text);
  return without_logins(trim(text.substr(text.rfind('\n') + 1)));
}

Error no_uv(std::string cause) {
  return failure("no-uv", "uv {} cannot be installed", kUvPinned)
      .because(std::move(cause))
      .hint(std::string(kInstallHint));
}

/// Downloads the pinned wheel into `folder` through the machine's own pip settings.
fs::path download_wheel(const fs::path& folder) {
  const std::optional<fs::path> python = find_program("python3");
  if (!python) throw no_uv("there is no `python3` on PATH");
  std::string requirement = fmt::format("uv=={}", kUvPinned);
  for (const std::string_view digest : kUvDigests) {
    requirement += fmt::format(" --hash=sha256:{}", digest);
  }
  write_file(folder / "requirements.txt", requirement + '\n', false);
  Command command{Purpose{"uv-download"}};
  // -E: a PYTHONPATH of the person's may name the project, where anything may be called `pip`.
  command.argv = {python->string(),
                  "-E",
                  "-m",
                  "pip",
                  "download",
                  "--quiet",
                  "--no-input",
                  "--no-deps",
                  "--only-binary=:all:",
                  "--require-hashes",
                  "--requirement",
                  "requirements.txt",
                  "--dest",
                  "."};
  command.folder = folder;
  std::vector<std::string> environment = uv_environment();
  narrow_netrc(environment, {}, folder);
  command.env = std::move(environment);
  const Captured said = run_captured(command, std::chrono::minutes(10));
  if (said.exit.code != 0) throw no_uv("pip: " + last_line(said.err));
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".whl") return entry.path();
  }
  throw no_uv("pip downloaded nothing");
}

void unpack_uv(const fs::path& wheel, const fs::path& target) {
  const Fd file = open_file(wheel);
  const std::string wanted = fmt::format("uv-{}.data/scripts/uv", kUvPinned);
  for (const ZipMember& member : read_zip_directory(file.get())) {
    if (member.name != wanted) continue;
    const std::string program = read_zip_member(file.get(), member, kLargestUv);
    AtomicFile out(target, 0755);
    out.write(as_bytes(program));
    out.commit();
    return;
  }
  throw no_uv(fmt::format("`{}` holds no `{}`", wheel.filename().string(), wanted));
}

}  // namespace

fs::path provide_uv(const fs::path& cache, Progress& progress) {
  if (std::optional<fs::path> found = uv_on_path(cache, progress)) return *found;
  const fs::path folder = fs::absolute(cache) / "uv" / kUvPinned;
  fs::path program = folder / "uv";
  if (fs::exists(program)) return program;
  make_folders(folder);
  const FileLock lock = FileLock::wait(folder / ".lock", FileLock::Mode::exclusive);
  if (fs::exists(program)) return program;  // another process was faster
  Activity activity(progress, fmt::format("installing uv {}", kUvPinned));
  const TemporaryFolder work(folder);
  unpack_uv(download_wheel(work.path()), program);
  return program;
}

}  // namespace mlenv
