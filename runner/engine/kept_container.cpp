#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <array>
#include <cerrno>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/pidfd.hpp"
#include "base/text.hpp"
#include "runner/engine/engine_run.hpp"
#include "runner/engine/engine_words.hpp"

namespace mlenv {
namespace {

constexpr std::chrono::seconds kContainerStart{120};
constexpr std::chrono::seconds kContainerEnd{20};
constexpr std::chrono::seconds kAbandoned{1};

/// By way of the open folder: an address holds 108 bytes, a path may be longer (unix(7)).
Fd listen_in(const fs::path& folder) {
  const Fd place = open_file(folder, O_PATH | O_DIRECTORY);
  Fd fd{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}/{}", place.get(), kKeeperSocket);
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const auto* const plain = reinterpret_cast<const sockaddr*>(&address);  // NOLINT: bind(2)'s way
  (void)::unlink(path.c_str());
  if (!fd || ::bind(fd.get(), plain, sizeof address) != 0 || ::listen(fd.get(), 1) != 0) {
    throw os_error(errno, "cannot make the socket `{}`", (folder / kKeeperSocket).string());
  }
  (void)::fchmodat(place.get(), kKeeperSocket, 0600, 0);
  return fd;
}

/// Ours, and no other that has its name.
void remove_container(const ContainerEngine& engine, const EngineContainer& container) {
  try {
    const Captured found = ask(engine, own_containers_words(container), kContainerEnd);
    for (const std::string_view line : split(found.out, '\n')) {
      const std::string id{trim(line)};
      const bool is_id =
          !id.empty() && id.find_first_not_of("0123456789abcdef") == std::string::npos;
      if (is_id) (void)ask(engine, remove_words(id), kContainerEnd);
    }
  } catch (const Error& error) {
    log::debug("removing the container: {}", error.what());
  }
}

}  // namespace

KeptContainer::KeptContainer(const ContainerEngine& engine, const EngineContainer& container,
                             const GuestWatch& watch)
    : engine_(engine), container_(container), words_(container.settings / "words") {
  const Fd listener = listen_in(container.folder);
  const Fd messages = open_file(words_, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  Command command = run_command(engine, container);
  command.stdout_fd = messages.get();
  command.stderr_fd = messages.get();
  client_.emplace(command);
  try {
    wait_for_keeper(listener, watch);
    root_ = keeper_.hello();
  } catch (...) {
    keeper_.close();
    client_.reset();
    remove_container(engine_, container_);
    throw;
  }
}

void KeptContainer::wait_for_keeper(const Fd& listener, const GuestWatch& watch) {
  const Fd ended = open_pidfd(client_->pid());
  std::array<pollfd, 4> fds{{{listener.get(), POLLIN, 0},
                             {ended.get(), POLLIN, 0},
                             {watch.socket, 0, 0},
                             {watch.signals, POLLIN, 0}}};
  const auto most = std::chrono::duration_cast<std::chrono::milliseconds>(kContainerStart);
  const auto until = std::chrono::steady_clock::now() + most;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    if (left.count() <= 0) throw not_started();
    if (::poll(fds.data(), fds.size(), static_cast<int>(left.count())) < 0 && errno != EINTR) {
      throw os_error(errno, "cannot wait for the container");
    }
    if (fds[0].revents != 0) break;
    if (fds[1].revents != 0) throw not_started();
    if (fds[2].revents != 0) throw failure("run-failed", "mlenv was killed");
    if (fds[3].revents == 0) continue;
    // It stays where it is: what waits there is the command's.
    if (const int number = waiting_end_signal()) throw NotStarted{number};
    fds[3].fd = -1;
  }
  keeper_ = Keeper{Fd{::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)}};
}

void KeptContainer::abandon() {
  keeper_.close();
  is_abandoned_ = true;
}

Error KeptContainer::not_started() const {
  return container_not_started(engine_.name, read_file_if_exists(words_).value_or(""));
}

KeptContainer::~KeptContainer() {
  keeper_.close();
  try {
    if (client_->wait(is_abandoned_ ? kAbandoned : kContainerEnd)) return;
    log::debug("{} does not end the container by itself", engine_.name);
    remove_container(engine_, container_);
  } catch (const Error& error) {
    log::debug("waiting for {}: {}", engine_.name, error.what());
  }
}

}  // namespace mlenv
