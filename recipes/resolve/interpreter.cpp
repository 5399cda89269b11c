#include "recipes/resolve/interpreter.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "base/file_digest.hpp"
#include "base/inflate.hpp"
#include "base/own_entries.hpp"
#include "base/scratch_folder.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kFileScheme = "file://";
constexpr std::string_view kTop = "python/";
constexpr std::uint64_t kHeaderLimit = 65'536;
constexpr std::string_view kLayout =
    "an archive of python-build-standalone, in the form `install_only`, is one that works";

Error bad_python(std::string why) {
  return failure("bad-python", "the archive of Python cannot be used")
      .because(std::move(why))
      .hint(std::string(kLayout));
}

/// `PY_VERSION` of Include/patchlevel.h.
std::string header_version(std::string_view header) {
  constexpr std::string_view kDefine = "#define PY_VERSION";
  const std::size_t start = header.find(kDefine);
  if (start == std::string_view::npos) return {};
  const std::string_view rest = trim(header.substr(start + kDefine.size()));
  if (!rest.starts_with('"')) return {};
  const std::string_view text = rest.substr(1, rest.find('"', 1) - 1);
  // `3.12.8+` is what a distribution's own patches make of it; `3.13.0rc2` is a release's eve.
  const std::size_t end = text.find_first_not_of("0123456789.");
  return std::string(text.substr(0, end));
}

bool is_three_numbers(std::string_view text) {
  int count = 1;
  for (std::size_t dot = 0; (dot = text.find('.')) != std::string_view::npos; ++count) {
    if (!all_digits(text.substr(0, dot))) return false;
    text.remove_prefix(dot + 1);
  }
  return count == 3 && all_digits(text);
}

std::string read_text(Source& data) {
  std::string text(kHeaderLimit, '\0');
  std::size_t filled = 0;
  while (filled < text.size()) {
    const std::size_t count =
        data.read(std::as_writable_bytes(std::span{text.data() + filled, text.size() - filled}));
    if (count == 0) break;
    filled += count;
  }
  text.resize(filled);
  return text;
}

std::string archive_version(const fs::path& archive) {
  std::string version;
  bool any = false;
  std::vector<std::string> programs;
  read_interpreter(archive, [&](const TarEntry& entry, Source& data) {
    any = true;
    if (entry.path.starts_with("bin/python3.")) programs.push_back(entry.path.substr(4));
    if (entry.path.starts_with("include/python3.") && entry.path.ends_with("/patchlevel.h")) {
      version = header_version(read_text(data));
    }
  });
  if (!any) throw bad_python("it holds no folder `python`");
  if (version.empty()) throw bad_python("it holds no `python/include/python3.N/patchlevel.h`");
  if (!is_three_numbers(version)) {
    throw bad_python(fmt::format("its patchlevel.h says `{}`, which is no version", version));
  }
  const std::string program = "python" + version.substr(0, version.rfind('.'));
  if (std::find(programs.begin(), programs.end(), program) == programs.end()) {
    throw bad_python(fmt::format("it holds no `python/bin/{}`", program));
  }
  return version;
}

std::string file_name(const std::string& url) {
  const std::string path = url.substr(0, url.find_first_of("?#"));
  return path.substr(path.rfind('/') + 1);
}

/// A recipe names it: a pipe there would be waited for without end, a device read without end.
Fd open_archive(const fs::path& path) {
  Fd fd = open_file(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) throw os_error(errno, "cannot read `{}`", path.string());
  if (!S_ISREG(status.st_mode)) {
    throw failure("not-a-file", "`{}` is no regular file", path.string())
        .hint("`sources.python.url` names an archive of Python");
  }
  return fd;
}

std::uint64_t file_size_of(const Fd& fd) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) throw os_error(errno, "cannot read a file's size");
  return static_cast<std::uint64_t>(status.st_size);
}

}  // namespace

fs::path interpreter_path(const fs::path& cache, const Digest& digest) {
  return cache / "interpreters" / digest.hex();
}

bool is_intact_interpreter(const fs::path& path, const Digest& digest) {
  std::error_code absent;
  return fs::exists(path, absent) && digest_of_file(path) == digest;
}

LockedPython locked_interpreter(const fs::path& path, std::string name, const Digest& digest) {
  return {archive_version(path), std::move(name), fs::file_size(path), digest};
}

void fetch_interpreter(const std::string& url, const std::optional<Digest>& digest,
                       std::optional<std::uint64_t> size_bytes, const fs::path& path, Http& http) {
  make_own_folders(path.parent_path());
  AtomicFile file{path};
  if (url.starts_with(kFileScheme)) {
    const Fd from = open_archive(fs::path(url.substr(kFileScheme.size())));
    FdSource source{from.get()};
    FdSink sink{file.fd()};
    if (digest) {
      const std::uint64_t size = size_bytes.value_or(file_size_of(from));
      VerifyingSink verified{sink, *digest, size, display_url(url)};
      copy(source, verified);
      verified.finish();
    } else {
      copy(source, sink);
    }
  } else {
    http.download({url, digest, size_bytes, {}}, file.fd(), {});
  }
  file.commit(/*durable=*/false);
}

void read_interpreter(const fs::path& archive,
                      const std::function<void(const TarEntry&, Source&)>& take) {
  // libarchive reads a stream of tar: the compression is undone into a file first.
  const ScratchFolder folder;
  const fs::path tar = folder.path() / "python.tar";
  {
    const Fd from = open_file(archive);
    FdSource compressed{from.get()};
    AtomicFile file{tar};
    FdSink sink{file.fd()};
    decompress(compressed, sink);
    file.commit(/*durable=*/false);
  }
  const Fd fd = open_file(tar);
  FdSource source{fd.get()};
  read_tar(source, [&](const TarEntry& entry, Source& data) {
    if (!entry.path.starts_with(kTop)) return;
    TarEntry inner = entry;
    inner.path.erase(0, kTop.size());
    if (entry.type == TarEntry::Type::hardlink) {
      if (!entry.link.starts_with(kTop)) {
        throw bad_python(fmt::format("`{}` is a hard link out of it", entry.path));
      }
      inner.link.erase(0, kTop.size());
    }
    take(inner, data);
  });
}

LockedPython lock_interpreter(const RecipeSources::Python& source, Http& http,
                              const fs::path& cache, Progress& progress) {
  const Digest digest = Digest::from_hex(source.sha256);
  const fs::path path = interpreter_path(cache, digest);
  const std::string name = file_name(source.url.text);
  Activity activity{progress, "looking at " + name};
  return while_doing("looking at the Python of `" + display_url(source.url.text) + "`", [&] {
    if (!is_intact_interpreter(path, digest)) {
      fetch_interpreter(source.url.text, digest, std::nullopt, path, http);
    }
    LockedPython python = locked_interpreter(path, name, digest);
    activity.result(python.version);
    return python;
  });
}

}  // namespace mlenv
