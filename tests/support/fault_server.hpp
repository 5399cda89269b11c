#pragma once
// A tiny HTTP/1.1 server on 127.0.0.1 whose answers and faults are scripted: truncated and reset
// bodies, stalls, wrong bytes, refusals, redirects, ranges, broken uploads.
//
// What it cannot show: TLS, proxies, slow networks and half-open connections (loopback neither
// loses nor delays), chunked encoding, HTTP/2, how a real registry keeps an upload's state (for
// that the e2e tests run docker-registry).
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/handle.hpp"

namespace mlenv::test {

struct Seen {
  std::string method;
  std::string target;                          ///< path and query, as sent
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;                            ///< as much as was read
  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string{} : found->second;
  }
};

struct Reply {
  enum class Fault {
    none,
    close,  ///< sends `cut_at` bytes of the body, then closes
    reset,  ///< the same, then resets the connection
    stall,  ///< the same, then keeps silent until the client goes
    drip,   ///< the same, then one byte each 10 ms
  };
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  bool ranges = false;      ///< a Range request gets 206 and the rest
  bool says_length = true;  ///< else the body ends with the connection
  Fault fault = Fault::none;
  std::size_t cut_at = 0;
  /// Reads so much of the request's body, then resets without an answer.
  std::optional<std::size_t> reset_upload_at;
};

inline Reply reply(int status, std::string body = {}) {
  Reply made;
  made.status = status;
  made.body = std::move(body);
  return made;
}

class FaultServer {
 public:
  FaultServer();
  FaultServer(const FaultServer&) = delete;
  FaultServer& operator=(const FaultServer&) = delete;
  ~FaultServer();

  std::string host() const { return "127.0.0.1:" + std::to_string(port_); }
  std::string url(const std::string& path) const { return "http://" + host() + path; }
  /// The nth request for this path (query apart) gets the nth reply, later ones the last.
  void script(const std::string& path, std::vector<Reply> replies);
  /// Answers everything without a script. It sees the request's head only: bodies are in `seen()`.
  void otherwise(std::function<Reply(const Seen&)> handler);
  /// In order of arrival.
  std::vector<Seen> seen() const;
  std::vector<Seen> seen(const std::string& path) const;
  std::size_t connections() const;

 private:
  struct Script {
    std::vector<Reply> replies;
    std::size_t next = 0;
  };
  void accept_loop();
  void serve(int fd);
  bool answer(int fd, std::string& buffer);
  bool read_head(int fd, std::string& buffer, Seen& seen) const;
  bool read_body(int fd, std::string& buffer, Seen& seen, std::optional<std::size_t> stop) const;
  bool send_reply(int fd, const Seen& seen, const Reply& reply);
  Reply reply_to(const Seen& seen);

  Fd listener_;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::map<std::string, Script> scripts_;
  std::function<Reply(const Seen&)> handler_;
  std::vector<Seen> seen_;
  std::vector<int> open_;
  std::size_t connections_ = 0;
  std::list<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace mlenv::test
