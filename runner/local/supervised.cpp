#include "runner/local/supervised.hpp"

#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>

#include <nlohmann/json.hpp>

#include "runner/local/stage.hpp"

namespace mlenv {

void Supervised::look_after(Child process, Fd socket) {
  child_.emplace(std::move(process));
  socket_ = std::move(socket);
}

bool Supervised::hear() {
  std::array<char, 4096> buffer{};
  ssize_t count = 0;
  while ((count = ::read(socket_.get(), buffer.data(), buffer.size())) < 0 && errno == EINTR) {
  }
  if (count <= 0) {
    // It has closed its end, and is about to go.
    constexpr std::chrono::seconds kMost{10};
    (void)child_->wait(kMost);
    return false;
  }
  bytes_.append(buffer.data(), static_cast<std::size_t>(count));
  while (const std::optional<std::string> frame = take_frame(bytes_)) take(*frame);
  return true;
}

void Supervised::take(const std::string& frame) {
  const nlohmann::json word = nlohmann::json::from_cbor(frame.begin(), frame.end(), true, false);
  if (word.is_object() && word.contains("id")) {
    id_ = word.at("id");
  } else if (word.is_object() && word.contains("started")) {
    started_ = true;
    on_started();
  } else if (!word.is_object() || !take_own(word)) {
    try {
      outcome_ = parse_stage_outcome(frame).run;
    } catch (const Error& error) {
      failure_ = error;
    }
  }
}

void Supervised::kill() { signal_process(SIGKILL); }

}  // namespace mlenv
