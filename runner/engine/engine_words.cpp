#include "runner/engine/engine_words.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "base/text.hpp"

namespace mlenv {
namespace {

/// Its own words, without those about its own ways.
std::string last_engine_line(std::string_view text) {
  std::string last;
  for (const std::string_view line : split(trim(text), '\n')) {
    const std::string_view word = trim(line);
    if (word.empty() || word.starts_with("See 'docker run --help'") ||
        word.starts_with("Run 'docker run --help'")) {
      continue;
    }
    last = word;
  }
  constexpr std::string_view kFrom = "docker: Error response from daemon: ";
  return last.starts_with(kFrom) ? last.substr(kFrom.size()) : last;
}

bool says_any(std::string_view words, std::initializer_list<std::string_view> some) {
  return std::any_of(some.begin(), some.end(),
                     [&](std::string_view one) { return words.find(one) != words.npos; });
}

}  // namespace

Error container_not_started(std::string_view engine, std::string_view words) {
  const std::string why = words.empty() ? "it does not say why" : last_engine_line(words);
  if (says_any(words, {"the container cannot reach mlenv", "bind source path does not exist"})) {
    return failure("run-failed", "{} runs containers where this machine's folders are not", engine)
        .because(why)
        .hint("use an engine of this machine itself; mlenv in a container needs its own");
  }
  if (says_any(words, {"/dev/net/tun", "slirp4netns failed", "pasta failed"})) {
    return failure("no-network", "{} could not set up the container's network", engine)
        .because(why)
        .hint(
            "let root run `chmod 666 /dev/net/tun`, as distributions have it; or use the host's "
            "network");
  }
  if (says_any(words, {"address already in use", "port is already allocated"})) {
    return failure("port-taken", "a port of this machine is taken").because(why);
  }
  // As runc, crun, podman and Docker's daemon say it.
  if (says_any(words,
               {"error mounting \"", "to rootfs at", "OCI runtime error: mount `", "crun: mount `",
                "invalid mount config", "ot a directory", "s a directory"})) {
    return usage_error("bad-mount", "{} cannot make the container's mounts", engine)
        .because(why)
        .hint("a folder goes on a folder, and a file on a file");
  }
  return failure("run-failed", "{} could not start the container", engine).because(why);
}

}  // namespace mlenv
