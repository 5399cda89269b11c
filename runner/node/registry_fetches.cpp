#include "runner/node/registry_fetches.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>

#include "base/error.hpp"
#include "base/proxy_words.hpp"
#include "base/text.hpp"
#include "images/partial_blob.hpp"

namespace mlenv::job {
namespace {

constexpr std::size_t kPipeReadBytes = std::size_t{256} << 10U;
constexpr std::size_t kMostTakenAtOnce = std::size_t{2} << 20U;
constexpr std::size_t kMostCurlWords = 4096;
constexpr int kMostRedirects = 5;
/// A pipe takes so much at once, so that nobody has to wait until curl has read it.
constexpr std::size_t kMostConfig = std::size_t{60} << 10U;

void do_not_wait(const Fd& fd) {
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags < 0 || ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) < 0) {
    throw os_error(errno, "cannot listen to `curl`");
  }
}

/// What is there; false: there will be nothing more. `most` bounds what is kept.
void read_said(Fd& from, std::string& text) {
  std::string buffer(kMostCurlWords, '\0');
  while (true) {
    const ssize_t count = ::read(from.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) return from.reset();
    const std::size_t room = kMostCurlWords - std::min(kMostCurlWords, text.size());
    text.append(buffer, 0, std::min(room, static_cast<std::size_t>(count)));
  }
}

/// `curl: (7) Failed to connect` without the program's name; one line.
std::string reason_in(std::string_view said) {
  std::string text{trim(said.substr(0, said.find('\n')))};
  const std::size_t end = text.starts_with("curl: (") ? text.find(") ") : std::string::npos;
  if (end != std::string::npos) text.erase(0, end + 2);
  return without_proxy(std::move(text));
}

}  // namespace

void RegistryFetches::fetch(const FetchRange& range, std::uint64_t size) {
  const std::uint64_t pieces = piece_count(size);
  Fetch made{range};
  if (!registry_ || range.pieces == 0 || range.first >= pieces ||
      range.pieces > pieces - range.first) {
    return tell_end(made, {true, std::string(kRangeRefused), "there is nothing to be fetched"});
  }
  made.serial = registry_->serial;
  made.blobs = registry_->blobs;
  made.authorization = registry_->authorization;
  made.any_certificate = registry_->any_certificate;
  made.url = registry_->blobs + range.digest;
  made.at = range.first * kPieceBytes;
  made.end = std::min(size, (range.first + range.pieces) * kPieceBytes);
  made.whole_blob = range.pieces == pieces;
  try {
    begin(made);
  } catch (const Error& error) {
    return tell_end(made, {true, std::string(kRangeRefused), error.what()});
  }
  fetches_.push_back(std::move(made));
}

void RegistryFetches::begin(Fetch& fetch) {
  CurlRequest request{fetch.url, {}, false, fetch.at, fetch.end - 1};
  if (same_origin_url(fetch.url, fetch.blobs)) {
    request.authorization = fetch.authorization;
    request.any_certificate = fetch.any_certificate;
  }
  const std::string config = render_curl_config(request);
  if (config.size() > kMostConfig) throw failure("bad-stream", "the registry's token is too long");
  Pipe in = make_pipe();
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  Command command{Purpose{"node-fetch"}};
  // Without ~/.curlrc, which might have it write or show what it is told.
  command.argv = {"curl", "-q", "--config", "-"};
  command.stdin_fd = in.read_end.get();
  command.stdout_fd = out.write_end.get();
  command.stderr_fd = err.write_end.get();
  fetch.curl.reset();
  fetch.curl.emplace(command);
  in.read_end.reset();  // else a curl that is gone would be waited for
  (void)write_quietly(in.write_end.get(), config);
  fetch.out = std::move(out.read_end);
  fetch.err = std::move(err.read_end);
  do_not_wait(fetch.out);
  do_not_wait(fetch.err);
  fetch.said.clear();
  fetch.reader = {};
  fetch.head.reset();
}

void RegistryFetches::add_to(std::vector<pollfd>& fds) const {
  for (const Fetch& one : fetches_) {
    fds.push_back({one.out.get(), POLLIN, 0});
    fds.push_back({one.err ? one.err.get() : -1, POLLIN, 0});
  }
}

const pollfd* RegistryFetches::hear(const pollfd* seen) {
  for (auto one = fetches_.begin(); one != fetches_.end();) {
    const bool spoke = (seen++)->revents != 0;
    if ((seen++)->revents != 0 && one->err) read_said(one->err, one->said);
    Turn turn;
    try {
      if (spoke) turn = receive(*one);
    } catch (const Error& error) {
      turn = {true, std::string(kRangeRefused), error.what()};
    }
    if (!turn.over) {
      ++one;
      continue;
    }
    tell_end(*one, turn);
    one = fetches_.erase(one);
  }
  return seen;
}

RegistryFetches::Turn RegistryFetches::receive(Fetch& fetch) {
  std::string buffer(kPipeReadBytes, '\0');
  for (std::size_t taken = 0; taken < kMostTakenAtOnce;) {
    const ssize_t count = ::read(fetch.out.get(), buffer.data(), buffer.size());
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return {};
      throw os_error(errno, "cannot listen to `curl`");
    }
    if (count == 0) return on_end(fetch);
    taken += static_cast<std::size_t>(count);
    const int redirects = fetch.redirects;
    Turn turn = take(fetch, {buffer.data(), static_cast<std::size_t>(count)});
    // After a redirect what is read is another curl's.
    if (turn.over || fetch.redirects != redirects) return turn;
  }
  return {};
}

RegistryFetches::Turn RegistryFetches::take(Fetch& fetch, std::string_view bytes) {
  if (!fetch.head) {
    fetch.head = fetch.reader.take(bytes);
    if (!fetch.head) return {};
    const int redirects = fetch.redirects;
    Turn turn = on_head(fetch);
    if (turn.over || fetch.redirects != redirects) return turn;
  }
  take_body(fetch, bytes);
  return {fetch.at == fetch.end, {}, {}};
}

RegistryFetches::Turn RegistryFetches::on_head(Fetch& fetch) {
  const AnswerHead& head = *fetch.head;
  const bool own = same_origin_url(fetch.url, fetch.blobs);
  if (head.status == 206 && head.from == fetch.at) {
    fetch.gives_ranges = true;
    return {};
  }
  if (head.status == 200) {
    fetch.skip = fetch.at;
    // Asked for all of it, a server may leave out that it is a part.
    fetch.gives_ranges = fetch.whole_blob;
    return {};
  }
  if (head.status / 100 == 3 && !head.location.empty()) return follow(fetch);
  const std::string why = fmt::format("`{}` answered {}", shown_url(fetch.url), head.status);
  if (head.status == 401 && own) return {true, std::string(kRangeUnauthorized), why};
  // A signed address may have run out: the registry gives another one.
  const bool again = may_come_by_status(head.status) || !own;
  return {true, std::string(again ? kRangeBroken : kRangeRefused), why};
}

RegistryFetches::Turn RegistryFetches::follow(Fetch& fetch) {
  const auto next = redirected(fetch.url, fetch.head->location);
  if (!next || ++fetch.redirects > kMostRedirects) {
    return {true, std::string(kRangeRefused),
            fmt::format("`{}` leads to where nobody follows", shown_url(fetch.url))};
  }
  fetch.url = *next;
  begin(fetch);
  return {};
}

void RegistryFetches::take_body(Fetch& fetch, std::string_view bytes) {
  const std::size_t skipped =
      static_cast<std::size_t>(std::min<std::uint64_t>(fetch.skip, bytes.size()));
  fetch.skip -= skipped;
  bytes.remove_prefix(skipped);
  while (!bytes.empty() && fetch.at < fetch.end) {
    const std::uint64_t piece = fetch.at / kPieceBytes;
    const std::uint64_t stop = std::min(fetch.end, (piece + 1) * kPieceBytes);
    const std::string_view part = bytes.substr(0, static_cast<std::size_t>(stop - fetch.at));
    events_.bytes(fetch.range.digest, fetch.at, part);
    fetch.at += part.size();
    bytes.remove_prefix(part.size());
    if (fetch.at == stop) events_.whole(fetch.range.digest, piece);
  }
}

/// Before all came.
RegistryFetches::Turn RegistryFetches::on_end(Fetch& fetch) {
  constexpr std::chrono::seconds kEnding{2};
  const std::optional<Exit> exit = fetch.curl->wait(kEnding);
  if (fetch.err) read_said(fetch.err, fetch.said);
  const int code = exit ? exit->code : 0;
  std::string why = reason_in(fetch.said);
  if (why.empty())
    why = code == 0 ? "less came than was asked for"
                    : fmt::format("`curl` ended with status {}", code);
  return {true, std::string(may_come_by_exit(code) ? kRangeBroken : kRangeRefused), why};
}

void RegistryFetches::tell_end(const Fetch& fetch, const Turn& turn) {
  events_.ended({fetch.range.digest, fetch.range.first, fetch.range.pieces, turn.how, turn.why,
                 fetch.serial, fetch.gives_ranges});
}

}  // namespace mlenv::job
