#include "cli/copy.hpp"

#include <algorithm>
#include <csignal>
#include <map>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "cli/command_tree.hpp"
#include "cli/pull_from.hpp"
#include "cli/settings.hpp"
#include "cli/ui.hpp"
#include "cli/usage.hpp"
#include "recipes/text.hpp"
#include "runner/job/copy_image.hpp"
#include "runner/launch/hosts.hpp"
#include "runner/launch/slurm_steps.hpp"
#include "runner/launch/ssh_nodes.hpp"
#include "runner/local/machine.hpp"
#include "runner/node/program.hpp"

namespace mlenv::cli {
namespace {

struct CopyOptions {
  std::string image;
  std::string platform;
  std::string engine;
  std::string hosts;
  std::string interface;
  PullFromWords from;
};

std::unique_ptr<job::NodeStarter> node_starter(const CopyOptions& options) {
  const bool slurm = options.engine == "slurm";
  if (slurm && !options.hosts.empty()) {
    throw usage_error("usage", "`--hosts` is of `--engine ssh`, not of `slurm`");
  }
  if (!slurm && options.hosts.empty()) {
    throw usage_error("usage", "`mlenv copy` needs to know where to")
        .hint(
            "`--hosts FILE`, a host on each line, or `--hosts n1,n2,n3`; in an allocation of "
            "Slurm's `--engine slurm`");
  }
  if (!slurm) return job::ssh_nodes({job::hosts_of(options.hosts), job::node_program()});
  const auto variables = caller_variables();
  const auto nodes = variables.find("SLURM_JOB_NODELIST");
  if (nodes == variables.end()) {
    throw usage_error("usage", "this is no allocation of Slurm's: SLURM_JOB_NODELIST is not set")
        .hint("`salloc --nodes 4 mlenv copy --engine slurm " + options.image + "`");
  }
  return job::slurm_steps({nodes->second, job::node_program()});
}

/// What the image is called there: as here, unless it was named by its digest.
std::vector<std::string> stored_names(Ui& ui, const std::string& image) {
  std::vector<std::string> names;
  try {
    const std::string listed = listed_name(Reference::parse(image));
    for (const Store::Name& one : ui.store().names()) {
      if (one.name == listed) names.push_back(listed);
    }
  } catch (const Error&) {
    names.clear();  // a prefix of its digest
  }
  return names;
}

/// The image, and what it is to be called there. With a registry it may be there alone.
struct Copied {
  Image image;
  std::vector<std::string> names;
};

Copied copied_image(Ui& ui, const CopyOptions& options) {
  const bool absent = !options.from.reference.empty() && !ui.store().find_image(options.image);
  if (!absent) {
    return {image_named(ui, options.image, options.platform), stored_names(ui, options.image)};
  }
  std::string asked;  // a digest, or the begin of one
  std::vector<std::string> names;
  if (options.image.starts_with("sha256:")) {
    asked = options.image;
  } else if (const Reference name = Reference::parse(options.image); name.digest()) {
    asked = name.digest()->str();
  } else {
    names.push_back(listed_name(name));
  }
  Image image = image_without_layers(ui, options.from, options.platform);
  if (!image.digest().str().starts_with(asked)) {
    throw failure("other-image", "`{}` is another image than the one that nodes are to get",
                  options.from.reference)
        .because(fmt::format("there it is {}, and {} was asked for", image.digest().str(), asked));
  }
  return {std::move(image), std::move(names)};
}

/// A line of progress for each node that something comes to.
class CopyShow {
 public:
  explicit CopyShow(Ui& ui) : ui_(ui) {}
  job::CopyEvents events() {
    job::CopyEvents events;
    events.came = [this](const std::string& node, std::uint64_t there, std::uint64_t all) {
      came(node, there, all);
    };
    events.ended = [this](const job::CopiedNode& node) { ended(node); };
    events.notice = [this](const std::string& text) { ui_.say("mlenv: " + printable(text)); };
    return events;
  }

 private:
  struct Shown {
    int activity = 0;
    std::uint64_t there = 0;
  };
  void came(const std::string& node, std::uint64_t there, std::uint64_t all) {
    if (there == all && !shown_.contains(node)) return;
    const auto [found, begun] = shown_.try_emplace(node);
    Shown& one = found->second;
    if (begun) one.activity = ui_.progress().begin("copying to " + node, all, "bytes");
    if (there <= one.there) return;
    ui_.progress().advance(one.activity, there - one.there);
    one.there = there;
  }
  void ended(const job::CopiedNode& node) {
    const auto found = shown_.find(node.node);
    if (found == shown_.end()) return;
    ui_.progress().end(found->second.activity, node.error ? "failed" : "");
  }
  Ui& ui_;
  std::map<std::string, Shown> shown_;
};

std::uint64_t came_to(const job::CopiedNode& node) {
  return node.count.from_here + node.count.from_nodes + node.count.from_registry;
}

std::string state_of(const job::CopiedNode& node) {
  if (node.error) return "failed";
  return came_to(node) > 0 ? "copied" : "there";
}

nlohmann::json node_json(const job::CopiedNode& node) {
  nlohmann::json error;
  if (node.error) error = {{"code", node.error->code()}, {"message", node.error->what()}};
  nlohmann::json no_registry;
  if (!node.count.no_registry.empty()) no_registry = node.count.no_registry;
  return {{"node", node.node},
          {"state", state_of(node)},
          {"had_bytes", node.count.had},
          {"from_here_bytes", node.count.from_here},
          {"from_nodes_bytes", node.count.from_nodes},
          {"from_registry_bytes", node.count.from_registry},
          {"no_registry", std::move(no_registry)},
          {"seconds", node.seconds},
          {"error", std::move(error)}};
}

std::string copied_line(const job::CopiedNode& node, bool pulled) {
  if (node.error) return fmt::format("failed: {}", printable(node.error->what()));
  const std::uint64_t came = came_to(node);
  if (came == 0) return "has it already";
  return fmt::format(
      "{} in {:.1f} s, {} of it from other nodes{}{}", human_bytes(came), node.seconds,
      human_bytes(node.count.from_nodes),
      pulled ? ", " + human_bytes(node.count.from_registry) + " from the registry" : "",
      node.count.had > 0 ? ", " + human_bytes(node.count.had) + " was there" : "");
}

/// `pulled`: there was a registry.
void show_copy(const Ui& ui, const Image& image, const job::CopyOutcome& outcome, bool pulled) {
  if (ui.options.json) {
    nlohmann::json nodes = nlohmann::json::array();
    for (const job::CopiedNode& node : outcome.nodes) nodes.push_back(node_json(node));
    ui.answer(canonical({{"schema", "mlenv.copy/1"},
                         {"digest", image.digest().str()},
                         {"size_bytes", ImageSet{image}.layer_bytes()},
                         {"nodes", std::move(nodes)}}));
    return;
  }
  std::size_t width = 0;
  for (const job::CopiedNode& node : outcome.nodes) width = std::max(width, node.node.size());
  for (const job::CopiedNode& node : outcome.nodes) {
    ui.answer(fmt::format("{:<{}}  {}", node.node, width, copied_line(node, pulled)));
  }
}

/// What one could not do stands in the answer; the first is why there is an error at all.
void require_all(const job::CopyOutcome& outcome) {
  const auto failed = [](const job::CopiedNode& node) { return node.error.has_value(); };
  const auto first = std::find_if(outcome.nodes.begin(), outcome.nodes.end(), failed);
  if (first == outcome.nodes.end()) return;
  const auto count = std::count_if(outcome.nodes.begin(), outcome.nodes.end(), failed);
  Error error = failure("copy-failed", "the image did not come to {} of {} nodes", count,
                        outcome.nodes.size());
  error.because(fmt::format("node `{}`", first->node));
  for (const std::string& frame : first->error->frames()) error.because(frame);
  throw std::move(error).hint(first->error->hint().empty()
                                  ? "the same command again goes on where this one ended"
                                  : first->error->hint());
}

int copy_command(const CopyOptions& options, Ui& ui) {
  refuse_file(ui, options.image);
  if (options.from.plain_http && options.from.reference.empty()) {
    throw usage_error("usage", "`--plain-http` is of the registry that `--pull-from` names");
  }
  const std::unique_ptr<job::NodeStarter> starter = node_starter(options);
  const Copied copied = copied_image(ui, options);
  const job::PullFrom from = pull_from_of(ui, options.from, copied.image);
  CopyShow shown{ui};
  const job::CopyEvents events = shown.events();
  const job::CopyOutcome outcome = job::copy_image(
      ui.store(), *starter,
      {copied.image.digest().str(), copied.names, options.interface, from, {}}, events);
  if (outcome.signal != 0) {
    ui.say("mlenv: interrupted; what came is kept, and the same command goes on from there");
    return 128 + outcome.signal;
  }
  show_copy(ui, copied.image, outcome, !from.repository.empty());
  require_all(outcome);
  return 0;
}

}  // namespace

Action declare_copy(CLI::App& app) {
  auto options = std::make_shared<CopyOptions>();
  take_word_of(app.add_option("IMAGE", options->image, "name or digest")->required(),
               WordKind::image);
  take_word_of(
      app.add_option("--hosts", options->hosts, "where to: a file with a host a line, or a,b,c"),
      WordKind::file);
  take_one_of(app.add_option("--engine", options->engine,
                             "how nodes are reached; slurm: those of this allocation"),
              {"ssh", "slurm"});
  app.add_option("--interface", options->interface, "by which nodes fetch from each other")
      ->type_name("NAME");
  add_pull_from(app, options->from.reference);
  app.add_flag("--plain-http", options->from.plain_http, "that registry has no TLS");
  app.add_option("--platform", options->platform, "of an index the image for OS/ARCHITECTURE")
      ->type_name("PLATFORM");
  app.footer("example: mlenv copy jax-cpu --hosts gpu1,gpu2,gpu3");
  return [options](Ui& ui) { return copy_command(*options, ui); };
}

}  // namespace mlenv::cli
