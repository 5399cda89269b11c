#include "runner/probe/meeting.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace mlenv::probe {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::string_view kGreeting = "mlenv-gpu-probe";
constexpr std::size_t kMostGreeting = 200;
constexpr milliseconds kGreetingWait{2000};  ///< for somebody who connects and says nothing
constexpr milliseconds kConnectPause{100};   ///< until rank 0 is there
constexpr std::size_t kAnswerBytes = 2 * sizeof(std::uint32_t) + kUniqueIdBytes;
constexpr int kMostNodeGpus = 1024;  ///< of a node
using AnswerBytes = std::array<char, kAnswerBytes>;

std::runtime_error problem(const std::string& what, int error) {
  return std::runtime_error(what + ": " + std::generic_category().message(error));
}

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

/// Of reading and writing, and of connecting (socket(7)).
void bound(const Socket& socket, milliseconds wait) {
  constexpr int kThousand = 1000;
  const auto whole = std::max<milliseconds::rep>(wait.count(), 1);
  const timeval limit{whole / kThousand, whole % kThousand * kThousand};
  ::setsockopt(socket.fd(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(socket.fd(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

milliseconds left_before(steady_clock::time_point end) {
  return std::max(milliseconds{0}, std::chrono::ceil<milliseconds>(end - steady_clock::now()));
}

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

AddressList addresses_of(const Seat& seat) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int status = ::getaddrinfo(seat.address.c_str(), seat.port.c_str(), &wanted, &found);
  if (status != 0) {
    throw std::runtime_error("`" + seat.address + "`, where rank 0 is: " + ::gai_strerror(status));
  }
  return {found, &::freeaddrinfo};
}

/// All of it, or false.
bool send_all(const Socket& to, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(to.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

bool receive_all(const Socket& from, char* into, std::size_t size) {
  while (size > 0) {
    const ssize_t count = ::recv(from.fd(), into, size, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    into += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

/// Without its newline; empty for none within the bound, or one that is too long.
std::string receive_line(const Socket& from) {
  std::string line;
  char c = 0;
  while (line.size() < kMostGreeting && receive_all(from, &c, 1)) {
    if (c == '\n') return line;
    line += c;
  }
  return {};
}

int number_or_minus_one(std::string_view text) {
  int value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && rest == text.data() + text.size() ? value : -1;
}

std::string greeting(const Seat& seat, int gpus) {
  return std::string(kGreeting) + ' ' + seat.job + ' ' + std::to_string(seat.rank) + ' ' +
         std::to_string(gpus) + '\n';
}

struct Greeted {
  int rank = -1;  ///< -1: it was no greeting of this job's
  int gpus = 0;
};
Greeted read_greeting(std::string_view line, const Seat& seat) {
  const std::string before = std::string(kGreeting) + ' ' + seat.job + ' ';
  if (line.substr(0, before.size()) != before) return {};
  line.remove_prefix(before.size());
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return {};
  const int rank = number_or_minus_one(line.substr(0, space));
  const int gpus = number_or_minus_one(line.substr(space + 1));
  if (rank < 1 || rank >= seat.world || gpus < 1 || gpus > kMostNodeGpus) return {};
  return {rank, gpus};
}

AnswerBytes answer_bytes(const Roll& roll) {
  AnswerBytes bytes{};
  const auto before = static_cast<std::uint32_t>(roll.gpus_before);
  const auto all = static_cast<std::uint32_t>(roll.gpus);
  std::memcpy(bytes.data(), &before, sizeof before);
  std::memcpy(bytes.data() + sizeof before, &all, sizeof all);
  std::copy(roll.id.begin(), roll.id.end(), bytes.begin() + 2 * sizeof before);
  return bytes;
}

Roll read_answer(const AnswerBytes& bytes) {
  Roll roll;
  std::uint32_t before = 0;
  std::uint32_t all = 0;
  std::memcpy(&before, bytes.data(), sizeof before);
  std::memcpy(&all, bytes.data() + sizeof before, sizeof all);
  roll.gpus_before = static_cast<int>(before);
  roll.gpus = static_cast<int>(all);
  std::copy(bytes.begin() + 2 * sizeof before, bytes.end(), roll.id.begin());
  return roll;
}

// --- rank 0 ----------------------------------------------------------------------------------

Socket listen_at(const Seat& seat) {
  const AddressList found = addresses_of(seat);
  int error = EADDRNOTAVAIL;
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    Socket socket{::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    const int on = 1;
    ::setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (socket.fd() >= 0 && ::bind(socket.fd(), one->ai_addr, one->ai_addrlen) == 0 &&
        ::listen(socket.fd(), SOMAXCONN) == 0) {
      return socket;
    }
    error = errno;
  }
  throw problem("rank 0 cannot listen at " + seat.address + ":" + seat.port, error);
}

struct Comer {
  Socket socket{-1};
  int gpus = 0;  ///< 0: it has not come
};

std::string absent_among(const std::vector<Comer>& comers) {
  std::string names;
  for (std::size_t rank = 1; rank < comers.size(); ++rank) {
    if (comers[rank].gpus > 0) continue;
    names += (names.empty() ? "" : ", ") + std::to_string(rank);
  }
  return names;
}

void take_comer(const Socket& listener, const Seat& seat, std::vector<Comer>& comers) {
  Socket socket{::accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC)};
  if (socket.fd() < 0) return;
  bound(socket, kGreetingWait);
  const Greeted greeted = read_greeting(receive_line(socket), seat);
  if (greeted.rank < 1) return;
  Comer& comer = comers[static_cast<std::size_t>(greeted.rank)];
  comer.socket = std::move(socket);
  comer.gpus = greeted.gpus;
}

Roll gather(const Seat& seat, int gpus, const UniqueId& id, steady_clock::time_point end) {
  std::vector<Comer> comers(static_cast<std::size_t>(seat.world));
  comers.front().gpus = gpus;
  const Socket listener = listen_at(seat);
  for (std::string absent = absent_among(comers); !absent.empty(); absent = absent_among(comers)) {
    pollfd ready{listener.fd(), POLLIN, 0};
    const milliseconds wait = left_before(end);
    if (wait.count() == 0) throw std::runtime_error("these ranks did not come: " + absent);
    if (::poll(&ready, 1, static_cast<int>(wait.count())) > 0) take_comer(listener, seat, comers);
  }
  Roll own{id, 0, 0};
  for (const Comer& comer : comers) own.gpus += comer.gpus;
  int before = gpus;
  for (std::size_t rank = 1; rank < comers.size(); ++rank) {
    const AnswerBytes bytes = answer_bytes({id, before, own.gpus});
    if (!send_all(comers[rank].socket, {bytes.data(), bytes.size()})) {
      throw std::runtime_error("rank " + std::to_string(rank) + " has gone");
    }
    before += comers[rank].gpus;
  }
  return own;
}

// --- the others ------------------------------------------------------------------------------

/// As soon as rank 0 listens.
Socket connect_to(const Seat& seat, steady_clock::time_point end) {
  const AddressList found = addresses_of(seat);
  int error = ETIMEDOUT;
  while (left_before(end).count() > 0) {
    for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
      Socket socket{::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
      bound(socket, left_before(end));
      if (::connect(socket.fd(), one->ai_addr, one->ai_addrlen) == 0) return socket;
      error = errno;
    }
    ::poll(nullptr, 0, static_cast<int>(kConnectPause.count()));
  }
  throw problem("rank 0 cannot be reached at " + seat.address + ":" + seat.port, error);
}

Roll answer_roll(const Seat& seat, int gpus, steady_clock::time_point end) {
  const Socket socket = connect_to(seat, end);
  bound(socket, left_before(end));
  AnswerBytes bytes{};
  if (!send_all(socket, greeting(seat, gpus)) || !receive_all(socket, bytes.data(), bytes.size())) {
    throw std::runtime_error("rank 0 gave no answer: it has ended, or other ranks did not come");
  }
  return read_answer(bytes);
}

std::string needed_variable(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread so far
  if (value == nullptr || *value == '\0') {
    throw std::invalid_argument(std::string("--across is for ranks of a job: there is no ") + name);
  }
  return value;
}

int number_setting(const char* name, int least, int most) {
  const std::string text = needed_variable(name);
  const int value = number_or_minus_one(text);
  if (value < least || value > most) {
    throw std::invalid_argument(std::string(name) + " is `" + text + "`");
  }
  return value;
}

}  // namespace

Seat seat_from_environment() {
  constexpr int kMostRanks = 65536;
  constexpr int kMostPort = 65535;
  Seat seat;
  seat.world = number_setting("WORLD_SIZE", 1, kMostRanks);
  seat.rank = number_setting("RANK", 0, seat.world - 1);
  seat.address = needed_variable("MASTER_ADDR");
  seat.port = std::to_string(number_setting("MASTER_PORT", 1, kMostPort));
  seat.job = needed_variable("MLENV_JOB");
  return seat;
}

Roll call_roll(const Seat& seat, int gpus, const UniqueId& id, milliseconds patience) {
  const steady_clock::time_point end = steady_clock::now() + patience;
  return seat.rank == 0 ? gather(seat, gpus, id, end) : answer_roll(seat, gpus, end);
}

}  // namespace mlenv::probe
