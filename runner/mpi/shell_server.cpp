#include "runner/mpi/shell_server.hpp"

#include "runner/mpi/sockets.hpp"

namespace mlenv::mpi {

ShellServer::ShellServer(const Host& own, std::string secret)
    : secret_(std::move(secret)), listener_(listen_at(own)) {}

void ShellServer::add_to(std::vector<pollfd>& fds) const {
  fds.push_back({listener_.get(), POLLIN, 0});
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
  while (Fd connection = accept_from(listener_)) {
    sessions_.push_back(std::make_unique<ShellSession>(std::move(connection), secret_));
  }
}

}  // namespace mlenv::mpi
