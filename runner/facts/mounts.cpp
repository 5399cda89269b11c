// Mounts, and the disks behind them.
#include <sys/statvfs.h>
#include <algorithm>
#include <cerrno>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/text.hpp"
#include "runner/facts/probe.hpp"

namespace mlenv {
namespace {

bool is_octal(char c) { return c >= '0' && c <= '7'; }

/// Blanks and backslashes are written `\040` (proc_pid_mountinfo(5)).
std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && is_octal(text[i + 1]) && is_octal(text[i + 2]) &&
        is_octal(text[i + 3])) {
      const int code = (text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0');
      plain.push_back(static_cast<char>(code));
      i += 3;
    } else {
      plain.push_back(text[i]);
    }
  }
  return plain;
}

bool holds(std::string_view options, std::string_view option) {
  const auto parts = split(options, ',');
  return std::find(parts.begin(), parts.end(), option) != parts.end();
}

/// The nearest folder that is there: what is made below it goes on the same disk.
fs::path existing(const FactSources& from, fs::path path) {
  while (path.has_parent_path() && path != path.parent_path() && !present(from, path)) {
    path = path.parent_path();
  }
  std::error_code error;
  const fs::path real = from.live() ? fs::canonical(path, error) : path;
  return error ? path : real;
}

DiskFacts disk(const FactSources& from, const fs::path& path) {
  DiskFacts facts;
  facts.path = known(path.string(), "mlenv's settings");
  const fs::path place = existing(from, path);
  const auto mounted = mounts(from);
  const MountLine* on = nullptr;
  if (mounted) {
    // Of mounts at one place the last covers the others.
    for (const MountLine& one : *mounted) {
      if (is_beneath(place.native(), one.point) && (!on || one.point.size() >= on->point.size()))
        on = &one;
    }
  }
  if (on != nullptr) {
    facts.mount_point = known(on->point, mounted.source);
    facts.type = known(on->type, mounted.source);
    facts.read_only =
        known(holds(on->options, "ro") || holds(on->super_options, "ro"), mounted.source);
  } else {
    const std::string why = mounted ? mounted.source + " does not say" : mounted.source;
    facts.mount_point = unknown<std::string>(why);
    facts.type = unknown<std::string>(why);
    facts.read_only = unknown<bool>(why);
  }
  struct statvfs state {};
  if (!from.live()) {
    facts.size_bytes = facts.free_bytes = unknown<std::uint64_t>("not recorded");
  } else if (::statvfs(place.c_str(), &state) != 0) {
    facts.size_bytes = facts.free_bytes = unknown<std::uint64_t>("statvfs: " + errno_text(errno));
  } else {
    facts.size_bytes = known<std::uint64_t>(state.f_blocks * state.f_frsize, "statvfs");
    facts.free_bytes = known<std::uint64_t>(state.f_bavail * state.f_frsize, "statvfs");
  }
  return facts;
}

}  // namespace

Fact<std::vector<MountLine>> mounts(const FactSources& from) {
  return derived<std::vector<MountLine>>(
      file_text(from, "/proc/self/mountinfo"), [](const std::string& text) {
        std::vector<MountLine> lines;
        for (const std::string_view line : split(text, '\n')) {
          const auto words = words_of(line);
          const auto dash = std::find(words.begin(), words.end(), "-");
          // id, parent, device, root, point, options, tags…, `-`, type, source, options
          if (dash - words.begin() < 6 || words.end() - dash < 4) continue;
          lines.push_back({unescaped(words[3]), unescaped(words[4]), std::string(dash[1]),
                           std::string(words[5]), std::string(dash[3])});
        }
        return lines.empty() ? std::nullopt : std::optional(lines);
      });
}

StorageFacts probe_storage(const FactSources& from) {
  return {disk(from, from.store), disk(from, from.temporary), disk(from, "/dev/shm")};
}

}  // namespace mlenv
