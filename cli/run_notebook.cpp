#include "cli/run_notebook.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <deque>

#include <CLI/CLI.hpp>

#include "base/text.hpp"
#include "cli/running.hpp"
#include "cli/settings.hpp"
#include "recipes/text.hpp"
#include "runner/record/run_log.hpp"

namespace mlenv::cli {
namespace {

constexpr int kBetweenLooks = 100;  // milliseconds
constexpr const char* kTokenName = "JUPYTER_TOKEN";
/// What CLI11 gives for a flag without a value.
constexpr std::string_view kAnyPort = "true";

/// Options of Jupyter that `--jupyter` sets itself, or that would show the token to every user of
/// this machine.
constexpr std::array kOwnOptions = {
    std::pair{"--port", "give it with `--jupyter=PORT`"},
    std::pair{"--ip", "it is open to this machine alone; `ssh -L` leads there from another one"},
    std::pair{"--sock", "give a port with `--jupyter=PORT`"},
    std::pair{".port", "give it with `--jupyter=PORT`"},
    std::pair{".ip", "it is open to this machine alone; `ssh -L` leads there from another one"},
    std::pair{".sock", "give a port with `--jupyter=PORT`"},
    std::pair{".base_url", "leave it out: the address that is told begins at `/`"},
    std::pair{".token", "every user of this machine can read a command line: `-e JUPYTER_TOKEN`"},
    std::pair{".password", "every user of this machine can read a command line: leave it out"},
};

/// `--ServerApp.port=1` is one of `.port`.
bool is_option(std::string_view argument, std::string_view name) {
  const std::string_view word = argument.substr(0, argument.find('='));
  if (!word.starts_with("--")) return false;
  return name.front() == '.' ? word.ends_with(name) : word == name;
}

void refuse_own(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    for (const auto& one : kOwnOptions) {
      if (!is_option(argument, one.first)) continue;
      throw usage_error("usage", "`{}` is `--jupyter`'s own to set",
                        argument.substr(0, argument.find('=')))
          .hint(one.second);
    }
  }
}

std::optional<std::uint16_t> port_of(const std::string& word) {
  if (word == kAnyPort) return std::nullopt;
  std::uint16_t port = 0;
  const char* const end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data(), end, port);
  if (error == std::errc{} && rest == end && port != 0) return port;
  throw usage_error("usage", "`--jupyter={}` is no port", word)
      .hint("a number up to 65535, or none for the first free one from 8888 on");
}

/// The person's own, where `-e` gives one; else a new one.
std::string token_for(const std::vector<std::string>& env) {
  std::optional<std::string> token;
  for (const std::string& variable : env) {
    if (variable.starts_with(std::string(kTokenName) + "=")) {
      token = variable.substr(std::string_view(kTokenName).size() + 1);
    } else if (variable == kTokenName) {
      token = cli::variable(kTokenName);
    }
  }
  if (!token) return new_notebook_token();
  constexpr std::string_view kPlain = "-._~";  // beside letters and digits, in a URL
  const bool fits = !token->empty() && std::all_of(token->begin(), token->end(), [&](char c) {
    return is_alphanumeric(c) || kPlain.find(c) != std::string_view::npos;
  });
  if (!fits) {
    throw usage_error("usage", "the value of {} cannot be a token", kTokenName)
        .hint("letters, digits and `-._~`, at least one; or leave it out for a new one");
  }
  return *std::move(token);
}

std::string user_name() {
  const passwd* entry = ::getpwuid(::getuid());  // NOLINT(concurrency-mt-unsafe): one thread
  return entry != nullptr ? entry->pw_name : std::to_string(::getuid());
}

/// What leads here from the machine that the person came from by ssh; empty: they sit here.
std::string way_here(std::uint16_t port) {
  constexpr std::size_t kServer = 2;  // `CLIENT PORT SERVER PORT`, ssh(1)
  constexpr std::size_t kParts = 4;
  const std::string connection = variable("SSH_CONNECTION").value_or("");
  const std::vector<std::string_view> parts = split(connection, ' ');
  if (parts.size() != kParts) return {};
  const std::string other_port = parts.back() == "22" ? "" : fmt::format("-p {} ", parts.back());
  return fmt::format("ssh -N -L {}:127.0.0.1:{} {}{}@{}", port, port, other_port, user_name(),
                     parts[kServer]);
}

void say_ready(const Ui& ui, const std::string& title, const std::string& how_to_end,
               std::uint16_t port) {
  ui.say(fmt::format("{} is ready; {} ends it", title, how_to_end));
  if (const std::string way = way_here(port); !way.empty()) {
    ui.say(fmt::format("from the machine that you came from: {}", way));
  }
}

/// What it said last, for the person who cannot see it.
std::string last_words(const fs::path& run_folder) {
  constexpr std::size_t kMost = 12;
  LogReader reader{log_folder(run_folder)};
  std::deque<std::string> lines;
  while (const std::optional<std::string> text = reader.next()) {
    if (const auto line = parse_log_line(*text)) lines.emplace_back(line->text);
    if (lines.size() > kMost) lines.pop_front();
  }
  return join({lines.begin(), lines.end()}, "\n");
}

Fd repeating_timer() {
  constexpr long kNanoseconds = 1'000'000;
  Fd timer{::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)};
  if (!timer) throw os_error(errno, "cannot make a timer");
  const timespec time{0, kBetweenLooks * kNanoseconds};
  const itimerspec each{time, time};
  if (::timerfd_settime(timer.get(), 0, &each, nullptr) != 0) {
    throw os_error(errno, "cannot set a timer");
  }
  return timer;
}

bool chooses_log_level(const std::vector<std::string>& arguments) {
  return std::any_of(arguments.begin(), arguments.end(), [](const std::string& argument) {
    return argument.starts_with("--log-level") || argument.ends_with("debug");
  });
}

/// On a terminal it would ask whether Ctrl-C is meant.
void take_no_input() {
  const Fd null = open_file("/dev/null", O_RDWR);
  if (::dup2(null.get(), STDIN_FILENO) < 0) throw os_error(errno, "cannot close standard input");
}

}  // namespace

void add_notebook_option(CLI::App& app, std::string& word) {
  app.add_flag("--jupyter", word, "serve its Jupyter to this machine; --jupyter=PORT on that port");
}

std::optional<NotebookChoice> parse_notebook(const NotebookWords& words) {
  if (words.port.empty()) return std::nullopt;
  NotebookChoice choice{port_of(words.port), words.detach, std::nullopt};
  if (!words.name.empty()) choice.name = words.name;
  if (words.terminal) {
    throw usage_error("usage", "`--jupyter` is used in a browser, and `-t` gives it a terminal")
        .hint("leave `-t` out");
  }
  if (words.network == "none") {
    throw usage_error("usage", "`--jupyter` cannot be reached with `--network none`")
        .hint("`--network private` keeps it off this machine's own network");
  }
  refuse_own(words.arguments);
  return choice;
}

Notebook::Notebook(const Ui& ui, const NotebookChoice& choice, const ImageNames& files,
                   LocalRun& run)
    : name_(choice.name) {
  std::optional<NotebookServer> server = find_notebook_server(run.config, files);
  if (!server) {
    throw failure("no-jupyter", "the image has no Jupyter")
        .because("neither jupyter-lab nor jupyter-notebook nor jupyter-server is in its PATH")
        .hint("add it to the recipe: `mlenv add jupyterlab`, or `packages: [jupyterlab]`");
  }
  if (!server->has_kernel) {
    ui.say("the image has no kernel for notebooks: Python's is the package `ipykernel`");
  }
  server_ = *std::move(server);
  address_ = {notebook_port(choice.port, run.options.ports), token_for(run.env), server_.page};
  // A screen of what was loaded would hide the address; in the background nobody sees it.
  if (!choice.detach && !chooses_log_level(run.argv)) run.argv.emplace_back("--log-level=WARN");
  serve_notebook(run, server_, address_);
}

BeforeStart Notebook::before_start(Ui& ui) {
  take_no_input();
  timer_ = repeating_timer();
  return [this, &ui](const std::string& id, const fs::path& folder, RunEvents& events) {
    id_ = id;
    if (!folder.empty()) keep_notebook_url(folder, address_.url());
    events.readers.push_back({timer_.get(), [this, &ui] { return look(ui); }});
  };
}

bool Notebook::look(Ui& ui) {
  std::uint64_t count = 0;
  if (::read(timer_.get(), &count, sizeof count) != sizeof count) return false;
  if (!notebook_answers(address_)) return true;
  reached_ = true;
  if (ui.options.json) {
    answer_started(ui, {id_, name_, address_.url()});
  } else {
    ui.answer(address_.url());
  }
  say_ready(ui, server_.title, "Ctrl-C", address_.port);
  return false;
}

Error Notebook::failed(const std::string& what) const {
  return failure("jupyter-failed", "{} {} before it could be reached at {}", server_.title, what,
                 address_.place());
}

void Notebook::require_reached(const RunOutcome& outcome) const {
  const bool by_itself = outcome.ended_by == EndedBy::itself && !outcome.exit.signalled;
  if (reached_ || !by_itself || outcome.exit.code == 0) return;
  throw failed(fmt::format("ended with status {}", outcome.exit.code))
      .because("what it said stands above");
}

std::string Notebook::url_in_background(const Ui& ui, const std::string& id) {
  const RunRecords records = run_records();
  keep_notebook_url(records.folder_of(id), address_.url());
  while (!notebook_answers(address_)) {
    if (!records.goes_on(id)) {
      throw failed("ended").because(last_words(records.folder_of(id)));
    }
    (void)::poll(nullptr, 0, kBetweenLooks);
  }
  say_ready(ui, server_.title, fmt::format("`mlenv stop {}`", id), address_.port);
  return address_.url();
}

BegunRun run_with_notebook(const std::string& run) {
  const RunRecords records = run_records();
  const std::string id = records.find(run);
  require_running(records, id);
  const std::optional<std::string> url = kept_notebook_url(records.folder_of(id));
  if (url) return {id, records.read_brief(id).start.name, *url};
  throw refusal("no-notebook", "run `{}` serves no notebook that mlenv knows of", id)
      .hint("`mlenv run --jupyter` does");
}

}  // namespace mlenv::cli
