#include "tests/support/fault_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <chrono>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <string_view>

#include "base/error.hpp"

namespace mlenv::test {
namespace {

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string path_of(const std::string& target) { return target.substr(0, target.find('?')); }

std::size_t number(std::string_view text) {
  std::size_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

bool send_all(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t sent = ::send(fd, data.data(), data.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    data.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool receive_some(int fd, std::string& buffer) {
  std::array<char, 65536> chunk{};
  const ssize_t count = ::recv(fd, chunk.data(), chunk.size(), 0);
  if (count <= 0) return false;
  buffer.append(chunk.data(), static_cast<std::size_t>(count));
  return true;
}

/// The next close() sends RST instead of FIN.
void make_reset(int fd) {
  const linger now{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

}  // namespace

FaultServer::FaultServer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (!listener_ || ::bind(listener_.get(), generic, length) != 0 ||
      ::listen(listener_.get(), 64) != 0 || ::getsockname(listener_.get(), generic, &length) != 0) {
    throw os_error(errno, "cannot start the fault server");
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_loop(); });
}

FaultServer::~FaultServer() {
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
    for (const int fd : open_) ::shutdown(fd, SHUT_RDWR);
  }
  stop_.notify_all();
  ::shutdown(listener_.get(), SHUT_RDWR);  // wakes accept()
  acceptor_.join();
  for (std::thread& thread : threads_) thread.join();
}

void FaultServer::script(const std::string& path, std::vector<Reply> replies) {
  const std::lock_guard lock{mutex_};
  scripts_[path] = {std::move(replies), 0};
}

void FaultServer::otherwise(std::function<Reply(const Seen&)> handler) {
  const std::lock_guard lock{mutex_};
  handler_ = std::move(handler);
}

std::vector<Seen> FaultServer::seen() const {
  const std::lock_guard lock{mutex_};
  return seen_;
}

std::vector<Seen> FaultServer::seen(const std::string& path) const {
  std::vector<Seen> all = seen();
  std::erase_if(all, [&](const Seen& one) { return path_of(one.target) != path; });
  return all;
}

std::size_t FaultServer::connections() const {
  const std::lock_guard lock{mutex_};
  return connections_;
}

void FaultServer::accept_loop() {
  while (true) {
    const int fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    const std::lock_guard lock{mutex_};
    if (stopping_ || fd < 0) {
      if (fd >= 0) ::close(fd);
      return;
    }
    ++connections_;
    open_.push_back(fd);
    threads_.emplace_back([this, fd] { serve(fd); });
  }
}

void FaultServer::serve(int fd) {
  std::string buffer;
  while (answer(fd, buffer)) {
  }
  const std::lock_guard lock{mutex_};
  std::erase(open_, fd);
  ::close(fd);
}

/// One request; false when the connection is to be closed.
bool FaultServer::answer(int fd, std::string& buffer) {
  Seen seen;
  if (!read_head(fd, buffer, seen)) return false;
  Reply reply = reply_to(seen);
  const bool whole = read_body(fd, buffer, seen, reply.reset_upload_at);
  {
    const std::lock_guard lock{mutex_};
    seen_.push_back(seen);
  }
  if (reply.reset_upload_at) make_reset(fd);
  if (!whole || reply.reset_upload_at) return false;
  return send_reply(fd, seen, reply);
}

bool FaultServer::read_head(int fd, std::string& buffer, Seen& seen) const {
  std::size_t end = 0;
  while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
    if (!receive_some(fd, buffer)) return false;
    if (buffer[0] < 'A' || buffer[0] > 'Z') return false;  // TLS, say
  }
  const std::string head = buffer.substr(0, end + 2);
  buffer.erase(0, end + 4);
  std::size_t line_end = head.find("\r\n");
  const std::string first = head.substr(0, line_end);
  seen.method = first.substr(0, first.find(' '));
  seen.target = first.substr(seen.method.size() + 1);
  seen.target.resize(std::min(seen.target.find(' '), seen.target.size()));
  for (std::size_t at = line_end + 2; at < head.size(); at = line_end + 2) {
    line_end = head.find("\r\n", at);
    const std::string line = head.substr(at, line_end - at);
    const std::size_t colon = std::min(line.find(':'), line.size() - 1);
    const std::size_t value = line.find_first_not_of(' ', colon + 1);
    seen.headers[lower(line.substr(0, colon))] =
        value == std::string::npos ? std::string{} : line.substr(value);
  }
  return true;
}

bool FaultServer::read_body(int fd, std::string& buffer, Seen& seen,
                            std::optional<std::size_t> stop) const {
  const std::size_t length = number(seen.header("content-length"));
  const std::size_t wanted = std::min(length, stop.value_or(length));
  if (!seen.header("expect").empty() && !send_all(fd, "HTTP/1.1 100 Continue\r\n\r\n"))
    return false;
  while (buffer.size() < wanted) {
    if (!receive_some(fd, buffer)) return false;
  }
  seen.body = buffer.substr(0, wanted);
  buffer.erase(0, wanted);
  return true;
}

Reply FaultServer::reply_to(const Seen& seen) {
  std::function<Reply(const Seen&)> handler;
  {
    const std::lock_guard lock{mutex_};
    const auto found = scripts_.find(path_of(seen.target));
    if (found != scripts_.end() && !found->second.replies.empty()) {
      Script& script = found->second;
      const std::size_t index = std::min(script.next++, script.replies.size() - 1);
      return script.replies[index];
    }
    handler = handler_;
  }
  if (handler) return handler(seen);
  Reply none;
  none.status = 404;
  return none;
}

bool FaultServer::send_reply(int fd, const Seen& seen, const Reply& reply) {
  std::string_view body = reply.body;
  int status = reply.status;
  std::string head;
  const std::string range = seen.header("range");  // only `bytes=N-`
  if (reply.ranges && range.starts_with("bytes=") && status == 200) {
    const std::size_t from = number(std::string_view(range).substr(6));
    status = from < body.size() ? 206 : 416;
    body = from < body.size() ? body.substr(from) : std::string_view{};
    head += fmt::format("Content-Range: bytes {}-{}/{}\r\n", from, reply.body.size() - 1,
                        reply.body.size());
  }
  for (const auto& [name, value] : reply.headers) head += name + ": " + value + "\r\n";
  if (reply.says_length) head += fmt::format("Content-Length: {}\r\n", body.size());
  if (!send_all(fd, fmt::format("HTTP/1.1 {} Scripted\r\n{}\r\n", status, head))) return false;
  if (seen.method == "HEAD") return true;
  const bool faulty = reply.fault != Reply::Fault::none;
  if (!send_all(fd, faulty ? body.substr(0, reply.cut_at) : body)) return false;
  if (reply.fault == Reply::Fault::reset) {
    // The client must have read what came before: a reset throws away what lies in its buffer.
    std::unique_lock lock{mutex_};
    stop_.wait_for(lock, std::chrono::milliseconds{30}, [this] { return stopping_; });
    make_reset(fd);
  }
  if (reply.fault == Reply::Fault::stall) {
    std::unique_lock lock{mutex_};
    stop_.wait(lock, [this] { return stopping_; });
  }
  if (reply.fault == Reply::Fault::drip) {
    std::unique_lock lock{mutex_};
    for (std::size_t at = reply.cut_at; at < body.size(); ++at) {
      if (stop_.wait_for(lock, std::chrono::milliseconds{10}, [this] { return stopping_; })) break;
      if (!send_all(fd, body.substr(at, 1))) break;
    }
  }
  return !faulty && reply.says_length;
}

}  // namespace mlenv::test
