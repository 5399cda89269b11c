#include "runner/mpi/shell_server.hpp"

#include <algorithm>

#include "runner/mpi/sockets.hpp"

namespace mlenv::mpi {
namespace {

/// Others wait in the kernel until one of these has shown that it knows the secret, or has gone.
constexpr std::ptrdiff_t kMostStrangers = 64;

}  // namespace

ShellServer::ShellServer(const Host& own, std::string secret)
    : secret_(std::move(secret)), listener_(listen_at(own)) {}

void ShellServer::add_to(std::vector<pollfd>& fds) const {
  fds.push_back({full() ? -1 : listener_.get(), POLLIN, 0});
  for (const auto& one : sessions_) one->add_to(fds);
}

void ShellServer::hear(const pollfd* fds) {
  const bool someone = (fds++)->revents != 0;
  for (const auto& one : sessions_) {
    one->hear(fds);
    fds += ShellSession::kDescriptors;
    const std::optional<RankFailure> report = one->take_report();
    if (report && !failure_) failure_ = report;
  }
  std::erase_if(sessions_, [](const auto& one) { return one->over(); });
  if (!someone) return;
  while (!full()) {
    Fd connection = accept_from(listener_);
    if (!connection) return;
    sessions_.push_back(std::make_unique<ShellSession>(std::move(connection), secret_));
  }
}

bool ShellServer::full() const {
  return std::count_if(sessions_.begin(), sessions_.end(),
                       [](const auto& one) { return one->stranger(); }) >= kMostStrangers;
}

}  // namespace mlenv::mpi
