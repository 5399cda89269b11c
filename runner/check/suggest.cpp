#include "runner/check/suggest.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "recipes/compat/cuda_releases.hpp"
#include "recipes/compat/package_limits.hpp"
#include "recipes/distribution.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"
#include "runner/check/driver_standing.hpp"

namespace mlenv {
namespace {

/// A build that the table knows.
struct KnownBuild {
  std::string framework;  ///< `torch`
  std::string release;    ///< `2.10`
  std::string version;    ///< the newest that was read: `2.10.0`
  std::string cuda;       ///< `12.8`, or a major version
  std::vector<std::string> code;
  std::size_t place = 0;  ///< of its release among the framework's, newest first
};

/// The framework whose builds a package of the table is, and the CUDA of rows that name none.
/// TensorFlow's rows are of wheels whose extra `and-cuda` asks for packages of CUDA 12.
std::pair<std::string, std::string> framework_of(const CudaTable::Build& row) {
  constexpr std::string_view kJax = "jax-cuda";
  if (row.package == "torch") return {"torch", row.cuda};
  if (row.package == "tensorflow") return {"tensorflow", row.cuda.empty() ? "12" : row.cuda};
  if (!row.package.starts_with(kJax)) return {};
  const std::string rest = row.package.substr(kJax.size());
  return {"jax", rest.substr(0, rest.find_first_not_of("0123456789"))};
}

/// Newest first.
std::vector<KnownBuild> known_builds(std::string_view framework) {
  std::vector<KnownBuild> all;
  for (const CudaTable::Build& row : cuda_table().builds) {
    const auto [name, cuda] = framework_of(row);
    if (name != framework || cuda.empty() || row.versions.empty()) continue;
    KnownBuild one{name, row.release, row.versions.back(), cuda, {}};
    for (const DeviceCode& code : row.code) one.code.push_back(code.name());
    all.push_back(std::move(one));
  }
  std::stable_sort(all.begin(), all.end(), [](const KnownBuild& a, const KnownBuild& b) {
    return is_older(b.release, a.release);
  });
  for (std::size_t i = 1; i < all.size(); ++i) {
    all[i].place = all[i - 1].place + (all[i].release == all[i - 1].release ? 0 : 1);
  }
  return all;
}

/// The framework that the image has now; empty name: none of ours.
FrameworkBuild build_now(const Recipe& recipe, const std::vector<OnHost>& now) {
  for (const OnHost& one : now) {
    for (const FrameworkBuild& build :
         one.image->frameworks.value.value_or(std::vector<FrameworkBuild>{})) {
      FrameworkBuild found = build;
      if (found.name == "tensorflow-cpu") found.name = "tensorflow";
      return found;
    }
  }
  const auto named = named_framework(recipe);
  FrameworkBuild found;
  if (named) found.name = named->package;
  return found;
}

/// The image as it would be with the build. What follows from the old one is unknown.
ImageFacts with_build(ImageFacts image, const KnownBuild& build) {
  const std::string source = "builds of the framework that were read before";
  image.frameworks =
      known(std::vector<FrameworkBuild>{{build.framework, build.release, build.cuda}}, source);
  image.cuda_runtimes = known(std::vector<FoundLibrary>{{"", build.cuda}}, source);
  image.device_code =
      known(std::vector<DeviceLibrary>{{build.framework, build.code, true}}, source);
  return image;
}

ImageFacts without_cuda(ImageFacts image) {
  for (FrameworkBuild& one : image.frameworks.value.value_or(std::vector<FrameworkBuild>{})) {
    image.frameworks = known(std::vector<FrameworkBuild>{{one.name, one.version, "cpu"}}, "");
    break;
  }
  image.cuda_runtimes = known(std::vector<FoundLibrary>{}, "");
  image.device_code = known(std::vector<DeviceLibrary>{}, "");
  image.oldest_driver = known<std::string>("", "");
  image.gpus = known(std::vector<std::string>{}, "");
  return image;
}

/// The recipe's Python (`3.11`), as far as it is known before it is locked; empty: it is not.
std::string python_of(const Recipe& recipe) {
  if (recipe.python) return recipe.python->text;
  const Distribution* base =
      recipe.base_is_image ? nullptr : find_distribution(recipe.distribution);
  if (base == nullptr || recipe.sources.python) return {};
  return std::string(base->python_of(recipe.suite));
}

/// What the recipe asks of drivers and GPUs, made the hosts' own where they do not meet it.
RecipeChange demands_for(const Recipe& recipe, const std::vector<OnHost>& now) {
  RecipeChange change;
  std::string oldest = recipe.oldest_driver();
  for (const OnHost& one : now) {
    const Text driver = driver_of(*one.host);
    if (recipe.driver && driver && is_older(*driver, oldest)) {
      oldest = *driver;
      change.driver = ">=" + oldest;
    }
    if (recipe.gpus.empty()) continue;
    for (const Gpu& gpu : one.host->gpus.value.value_or(std::vector<Gpu>{})) {
      const auto code = architecture_of(gpu);
      if (!code) continue;
      const auto serves_it = [&](const std::string& text) {
        const auto asked = parse_device_code(text);
        return asked && runs_on(*asked, *code);
      };
      const bool there = std::any_of(recipe.gpus.begin(), recipe.gpus.end(),
                                     [&](const Placed& asked) { return serves_it(asked.text); }) ||
                         std::any_of(change.gpus.begin(), change.gpus.end(), serves_it);
      if (!there) change.gpus.push_back(code->name());
    }
  }
  return change;
}

ImageFacts with_demands(ImageFacts image, const Recipe& recipe, const RecipeChange& change) {
  if (!change.driver.empty()) {
    image.oldest_driver = known(change.driver.substr(2), "the recipe's `driver`");
  }
  std::vector<std::string> gpus;
  for (const Placed& gpu : recipe.gpus) gpus.push_back(gpu.text);
  gpus.insert(gpus.end(), change.gpus.begin(), change.gpus.end());
  if (!change.gpus.empty()) image.gpus = known(std::move(gpus), "the recipe's `gpus`");
  return image;
}

/// Collects proposals, each predicted by the rules themselves.
class Search {
 public:
  Search(const Recipe& recipe, const std::vector<OnHost>& now, const Demand& demand)
      : recipe_(recipe), now_(now), demand_(demand), demands_(demands_for(recipe, now)) {
    const auto named = named_framework(recipe);
    if (named) specifier_ = named->requirement.specifier;
    is_named_ = named.has_value();
    build_ = build_now(recipe, now);
    builds_ = known_builds(build_.name);
    const std::string python = python_of(recipe);
    std::erase_if(builds_, [&](const KnownBuild& one) {
      return !python.empty() && !has_wheels_for_python(one.framework, one.version, python);
    });
    for (const OnHost& here : now) {
      runs_now_.push_back(serves(judge(*here.image, *here.host, demand.use), demand));
    }
  }

  std::vector<Proposal> run() {
    if (demands_ != RecipeChange{}) {
      add(demands_, "the same build", 0, 0, [](const ImageFacts& image) { return image; });
    }
    for (const KnownBuild& one : builds_) add(one);
    add_majors();
    add_cpu();
    std::stable_sort(found_.begin(), found_.end(), [](const Ranked& a, const Ranked& b) {
      if (a.proposal.count() != b.proposal.count()) return a.proposal.count() > b.proposal.count();
      return std::pair(a.kind, a.distance) < std::pair(b.kind, b.distance);
    });
    std::vector<Proposal> all;
    for (Ranked& one : found_) {
      const bool is_new = std::none_of(all.begin(), all.end(), [&](const Proposal& other) {
        return other.change == one.proposal.change;
      });
      if (is_new) all.push_back(std::move(one.proposal));
    }
    return all;
  }

 private:
  struct Ranked {
    Proposal proposal;
    int kind = 0;  ///< how much of the recipe is another
    std::size_t distance = 0;
  };

  template <class Make>
  void add(const RecipeChange& change, std::string build, int kind, std::size_t distance,
           const Make& make) {
    Ranked one{{change, std::move(build)}, kind, distance};
    for (const OnHost& here : now_) {
      const ImageFacts image = with_demands(make(*here.image), recipe_, change);
      one.proposal.runs_on.push_back(serves(judge(image, *here.host, demand_.use), demand_));
    }
    const std::vector<bool>& runs_then = one.proposal.runs_on;
    bool keeps = true;
    for (std::size_t i = 0; i < runs_then.size(); ++i)
      keeps = keeps && (runs_then[i] || !runs_now_[i]);
    if (keeps && runs_then != runs_now_) found_.push_back(std::move(one));
  }

  bool fits(const KnownBuild& one) const {
    return specifier_.empty() || version_satisfies(one.version, specifier_);
  }

  /// The one that the resolver takes for its CUDA release when nothing else is said.
  bool is_first(const KnownBuild& one) const {
    const auto first = std::find_if(builds_.begin(), builds_.end(), [&](const KnownBuild& other) {
      return other.cuda == one.cuda && fits(other);
    });
    return first != builds_.end() && first->release == one.release;
  }

  std::size_t distance(const KnownBuild& one) const {
    const auto now = std::find_if(builds_.begin(), builds_.end(), [&](const KnownBuild& other) {
      return other.release == version_prefix(build_.version, 2);
    });
    if (now == builds_.end()) return one.place;
    return now->place > one.place ? now->place - one.place : one.place - now->place;
  }

  void add(const KnownBuild& one) {
    RecipeChange change = demands_;
    change.cuda = one.cuda;
    const bool only_cuda = is_first(one);
    if (!only_cuda && !is_named_) return;  // nowhere to say it
    if (!only_cuda) change.framework = fmt::format("=={}.*", one.release);
    add(change, fmt::format("{} {} for CUDA {}", one.framework, one.release, one.cuda),
        only_cuda ? 1 : 2, distance(one),
        [&](const ImageFacts& image) { return with_build(image, one); });
  }

  /// Builds that no table knows: of other packages, or from the recipe's own indexes.
  void add_majors() {
    const bool others = !recipe_.sources.pypi.empty();
    if (!builds_.empty() && !others) return;
    for (std::string_view major : {"13", "12", "11"}) {
      if (recipe_.cuda && recipe_.cuda->text == major) continue;
      RecipeChange change = demands_;
      change.cuda = std::string(major);
      const std::string name = build_.name.empty() ? "wheels" : build_.name;
      const KnownBuild build{build_.name, build_.version, change.cuda, change.cuda, {}};
      add(change, fmt::format("{} for CUDA {}", name, major), others ? 0 : 3, 0,
          [&](ImageFacts image) {
            image = with_build(std::move(image), build);
            image.device_code = unknown<std::vector<DeviceLibrary>>("known after `mlenv lock`");
            if (build_.name.empty()) {
              image.frameworks = known(std::vector<FrameworkBuild>{}, "the recipe");
            }
            return image;
          });
    }
  }

  void add_cpu() {
    const auto has_none = [](const OnHost& one) {
      return one.host->gpus && one.host->gpus->empty();
    };
    if (!std::all_of(now_.begin(), now_.end(), has_none)) return;
    RecipeChange change;
    change.cuda = "cpu";
    change.no_demands = recipe_.demands_of_cuda();
    add(change, build_.name.empty() ? "wheels without CUDA" : build_.name + " without CUDA", 4, 0,
        [](const ImageFacts& image) { return without_cuda(image); });
  }

  const Recipe& recipe_;
  const std::vector<OnHost>& now_;
  const Demand& demand_;
  RecipeChange demands_;
  std::string specifier_;
  bool is_named_ = false;
  FrameworkBuild build_;
  std::vector<KnownBuild> builds_;
  std::vector<bool> runs_now_;  ///< as the recipe is
  std::vector<Ranked> found_;
};

/// The branch that is the last for GPUs before compute capability 7.5 (NVIDIA's driver release
/// notes, "legacy GPUs"; the next branch is 590).
constexpr std::string_view kAfterLegacy = "590";
constexpr int kFirstAfterLegacy = 75;

/// Drivers that the table names, newer than this one, oldest first.
std::vector<std::string> drivers_after(std::string_view driver) {
  std::vector<std::string> all;
  for (const CudaTable::Floor& one : cuda_table().floors) all.push_back(one.driver);
  for (const CudaRelease& one : cuda_releases()) all.emplace_back(one.driver);
  std::erase_if(all, [&](const std::string& one) { return !is_older(driver, one); });
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return is_older(a, b); });
  return all;
}

bool is_for(const Facts& host, std::string_view driver) {
  if (is_older(driver, kAfterLegacy)) return true;
  const auto gpus = host.gpus.value.value_or(std::vector<Gpu>{});
  return std::none_of(gpus.begin(), gpus.end(), [](const Gpu& gpu) {
    const auto code = architecture_of(gpu);
    return code && code->major * 10 + code->minor < kFirstAfterLegacy;
  });
}

Facts with_driver(Facts host, const std::string& driver) {
  host.nvidia.kernel_driver = known(driver, "a newer driver");
  host.nvidia.user_driver = host.nvidia.kernel_driver;
  host.nvidia.cuda_version = unknown<std::string>("a newer driver");
  host.nvidia.cuda_version = driver_cuda(host);
  return host;
}

}  // namespace

std::size_t Proposal::count() const {
  return static_cast<std::size_t>(std::count(runs_on.begin(), runs_on.end(), true));
}

bool serves(const Verdict& verdict, const Demand& demand) {
  return std::none_of(verdict.findings.begin(), verdict.findings.end(),
                      [&](const Finding& finding) {
                        return finding.severity == Severity::blocks ||
                               (demand.strict && finding.severity == Severity::risks) ||
                               (demand.with_gpu && finding.rule == "no-gpu");
                      });
}

std::vector<Proposal> proposals(const Recipe& recipe, const std::vector<OnHost>& now,
                                const Demand& demand) {
  return Search(recipe, now, demand).run();
}

std::optional<std::string> driver_that_runs(const OnHost& here, const Demand& demand) {
  const Text driver = driver_of(*here.host);
  // Windows numbers its drivers otherwise.
  if (!driver || here.host->system.wsl.value == true) return std::nullopt;
  for (const std::string& newer : drivers_after(*driver)) {
    if (!is_for(*here.host, newer)) continue;
    const Facts host = with_driver(*here.host, newer);
    if (serves(judge(*here.image, host, demand.use), demand)) return newer;
  }
  return std::nullopt;
}

std::optional<DriverRemedy> driver_remedy(const Recipe& recipe, const OnHost& here,
                                          const Demand& demand) {
  if (const auto own = driver_that_runs(here, demand)) return DriverRemedy{*own, std::nullopt};
  const Text driver = driver_of(*here.host);
  if (!driver || here.host->system.wsl.value == true) return std::nullopt;
  for (const std::string& newer : drivers_after(*driver)) {
    if (!is_for(*here.host, newer)) continue;
    const Facts host = with_driver(*here.host, newer);
    const std::vector<OnHost> there = {{here.image, &host}};
    auto all = proposals(recipe, there, demand);
    if (!all.empty()) return DriverRemedy{newer, std::move(all.front())};
  }
  return std::nullopt;
}

std::vector<std::string> served_gpus(const ImageFacts& image) {
  std::vector<std::string> served;
  if (!image.device_code) return served;
  for (const std::string_view name : gpu_architectures()) {
    Gpu gpu;
    const auto code = parse_device_code(name);
    if (!code) continue;
    gpu.compute_capability = known(fmt::format("{}.{}", code->major, code->minor), "");
    const auto standing = code_standing(image, gpu);
    const bool decides = standing && !standing->library.empty();
    if (decides && standing->coverage == Coverage::complete) {
      served.push_back(*gpu.compute_capability);
    }
  }
  return served;
}

}  // namespace mlenv
