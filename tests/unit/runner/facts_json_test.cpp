#include <gtest/gtest.h>

#include "base/error.hpp"
#include "runner/facts/facts.hpp"

namespace mlenv {
namespace {

TEST(FactsJson, ComesBack) {
  Facts facts = read_facts(R"({"schema":"mlenv.facts/1"})", "empty");
  facts.system.kernel = known<std::string>("6.1.0", "uname");
  facts.system.container = unknown<std::string>("nobody knows");
  facts.cpu.limit_millicpus = known(Limit{1500}, "cpu.max");
  facts.memory.limit_bytes = known(Limit{}, "memory.max");
  facts.memory.numa = known(std::vector<NumaNode>{{1, known<std::string>("0-3", "x"), {}}}, "y");
  facts.gpus = known(std::vector<Gpu>{}, "NVML");
  facts.network.rdma =
      known(std::vector<RdmaPort>{{"mlx5_0", 1, {}, {}, {}, known(2.5, "r")}}, "s");
  EXPECT_EQ(read_facts(render_facts(facts), "it"), facts);
}

TEST(FactsJson, WhatIsNotThereIsUnknown) {
  const Facts facts =
      read_facts(R"({"schema":"mlenv.facts/1","system":{"kernel":{"value":"6.1","source":"uname"}},
                    "later":1})",
                 "old.json");
  EXPECT_EQ(facts.system.kernel.value, "6.1");
  EXPECT_FALSE(facts.system.wsl);
  EXPECT_EQ(facts.system.wsl.source, "`old.json` does not say");
  EXPECT_FALSE(facts.gpus);
  EXPECT_EQ(facts.storage.store.type.source, "`old.json` does not say");
}

std::string facts_complaint(const std::string& text) {
  try {
    read_facts(text, "f.json");
  } catch (const Error& error) {
    std::string all = error.code();
    for (const std::string& frame : error.frames()) all += ": " + frame;
    return all;
  }
  return "none";
}

TEST(FactsJson, OtherFiles) {
  EXPECT_EQ(facts_complaint("{}"),
            "bad-facts: `f.json` holds no facts of a host: it names no schema");
  EXPECT_EQ(facts_complaint("[]"),
            "bad-facts: `f.json` holds no facts of a host: it names no schema");
  EXPECT_EQ(facts_complaint(R"({"schema":"mlenv.lock/1"})"),
            "bad-facts: `f.json` holds no facts of a host: it is `mlenv.lock/1`");
  EXPECT_EQ(facts_complaint(R"({"schema":"mlenv.facts/2"})"),
            "facts-version: `f.json` is mlenv.facts/2, this mlenv reads mlenv.facts/1");
  EXPECT_EQ(
      facts_complaint(R"({"schema":"mlenv.facts/1","gpus":{"value":[{"index":-1}],"source":""}})"),
      "bad-facts: `f.json` cannot be read as facts: `gpus.value[0].index` is -1, where a "
      "whole number, 0 or more should be");
  EXPECT_EQ(facts_complaint(R"({"schema":"mlenv.facts/1","system":{"kernel":"6.1"}})"),
            "bad-facts: `f.json` cannot be read as facts: `system.kernel` is \"6.1\", where a "
            "record of `value` and `source` should be");
  EXPECT_EQ(facts_complaint("{").substr(0, 8), "bad-json");
}

}  // namespace
}  // namespace mlenv
