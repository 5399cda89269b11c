#include "runner/compare/probe_part.hpp"

#include <gtest/gtest.h>

#include "runner/compare/output.hpp"
#include "runner/compare/side_files.hpp"
#include "runner/compare/tools_run.hpp"

namespace mlenv::compare {
namespace {

using Rows = std::vector<std::string_view>;

const ProbeSpec& probe_named(std::string_view id) {
  for (const ProbeSpec& one : probe_specs()) {
    if (one.id == id) return one;
  }
  throw std::out_of_range("no such probe");
}

Bench bench() {
  Bench bench;
  bench.has_python = true;
  bench.port = 5201;
  bench.terms.processors = 3;
  return bench;
}

ActiveSide side(std::string_view id) { return {find_side_spec(id), {}}; }

TEST(CompareProbePart, WhatIsAskedForOfWhatIsThere) {
  const Ready all{true, "", true};
  const ProbeSpec& processors = probe_named("processors");
  const ProbePart part = part_on(processors, bench(), side("docker"), all, {"cpu.all", "disk"});
  EXPECT_EQ(part.probe.rows, Rows{"cpu.all"});
  ASSERT_EQ(part.probe.tools.size(), 1U);
  EXPECT_DOUBLE_EQ(part.probe.seconds, processors.seconds / 4);
  EXPECT_TRUE(part.whys.empty());
}

TEST(CompareProbePart, WhatCannotBeSaysWhy) {
  const ProbePart vm = part_on(probe_named("disk"), bench(), side("vm"), {true, "", true}, {});
  EXPECT_EQ(vm.probe.rows, Rows{"disk.fsync"});
  EXPECT_EQ(vm.whys.size(), 3U);
  const ProbePart none =
      part_on(probe_named("network"), bench(), side("builtin"), {true, "", false}, {});
  EXPECT_TRUE(none.probe.rows.empty() && none.whys.size() == 2);
  const ProbePart bare =
      part_on(probe_named("processors"), bench(), side("bare"), {false, "no network", true}, {});
  EXPECT_EQ(bare.whys.at("cpu.all"), "no network");
  const ProbePart snapshot =
      part_on(probe_named("snapshot"), bench(), side("bare"), {true, "", true}, {});
  EXPECT_TRUE(snapshot.probe.rows.empty() && snapshot.whys.size() == 2);
  const ProbePart command =
      part_on(probe_named("command"), bench(), side("bare"), {true, "", true}, {});
  EXPECT_TRUE(command.probe.rows.empty() && command.whys.empty()) << "there is no command";
}

TEST(CompareProbePart, DensityNeedsTheMemoryOfInstances) {
  EXPECT_TRUE(is_measured_for("memory.added", {"memory.density"}));
  EXPECT_FALSE(is_measured_for("memory.rest", {"memory.density"}));
}

TEST(CompareTools, WordsStandForWhatTheSideHas) {
  const std::string script = tools_script(tools_on(bench(), probe_named("network"), side("vm"))) +
                             tools_script(tools_on(bench(), probe_named("processors"), side("vm")));
  EXPECT_NE(script.find("-c 10.0.2.2 -p 5201 2>&1\n"), std::string::npos) << script;
  EXPECT_NE(script.find("--threads=3 "), std::string::npos) << script;
  EXPECT_EQ(script.find("HOST"), std::string::npos) << script;
}

TEST(CompareSideFiles, LayersAreWhereTheEngineSays) {
  using Paths = std::vector<fs::path>;
  EXPECT_EQ(layer_folders(R"({"LowerDir":"/a/diff:/b/diff","UpperDir":"/c/diff","WorkDir":"/d"})"),
            (Paths{"/a/diff", "/b/diff", "/c/diff"}));
  EXPECT_EQ(layer_folders(R"({"UpperDir":"/c"})"), Paths{"/c"});
  EXPECT_TRUE(layer_folders("null").empty());
  EXPECT_TRUE(layer_folders("").empty());
  EXPECT_TRUE(layer_folders(R"({"LowerDir":7,"UpperDir":"relative"})").empty());
}

}  // namespace
}  // namespace mlenv::compare
