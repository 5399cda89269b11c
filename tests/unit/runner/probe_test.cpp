#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runner/probe/aside.hpp"
#include "runner/probe/cuda.hpp"
#include "runner/probe/kernel.hpp"
#include "runner/probe/nccl.hpp"
#include "runner/probe/options.hpp"

namespace mlenv::probe {
namespace {

using nlohmann::json;

json parsed_answer(const Answer& answer) {
  return json::parse(answer_of(answer.judgement, answer.members));
}

TEST(ProbeOptions, AreReadAndWritten) {
  const Options plain = parse_options({});
  EXPECT_FALSE(plain.nccl);
  EXPECT_EQ(plain.mebibytes, 256U);
  const Options all =
      parse_options({"--size", "16384", "--nccl-library", "x y.so", "--timeout", "1"});
  EXPECT_TRUE(all.nccl);
  EXPECT_EQ(all.nccl_library, "x y.so");
  EXPECT_EQ(all.timeout.count(), 1);
  EXPECT_EQ(words_of(parse_options(words_of(all))), words_of(all));
  using Words = std::vector<std::string>;
  for (const Words& wrong : {Words{"--size"}, Words{"--size", "0"}, Words{"--size", "16385"},
                             Words{"--size", "1e3"}, Words{"--size", ""}, Words{"--timeout", "-1"},
                             Words{"--timeout", "86401"}, Words{"more"}, Words{"--nccl=1"}}) {
    EXPECT_THROW(parse_options(wrong), std::invalid_argument) << wrong.back();
  }
}

TEST(ProbeArithmetic, BusBandwidthIsThatOfEachLink) {
  // nccl-tests, PERFORMANCE.md: 2(n-1)/n of the algorithm's.
  EXPECT_FALSE(bus_rate(1000, 1, 1));
  EXPECT_FALSE(bus_rate(1000, 0, 2));
  EXPECT_DOUBLE_EQ(bus_rate(1000, 0.5, 2).value_or(0), 2000);
  EXPECT_DOUBLE_EQ(bus_rate(1000, 1, 4).value_or(0), 1500);
  EXPECT_DOUBLE_EQ(bus_rate(800, 1, 8).value_or(0), 1400);
}

TEST(ProbeReport, IsJsonWhateverADriverSays) {
  std::string every;
  for (int byte = 1; byte < 256; ++byte) every += static_cast<char>(byte);
  const std::string back = json::parse(json_text(every)).get<std::string>();
  EXPECT_EQ(back.substr(0, 0x7e), every.substr(0, 0x7e));
  EXPECT_EQ(back.substr(0x7e), std::string(every.size() - 0x7e, '?'));

  Report report;
  report.gpus.emplace_back().name = every;
  report.gpus[0].host_to_device = 25e9;
  report.pairs.emplace_back().problem = "none\nthere";
  report.nccl = NcclReport{"lib", "2.28.3", 2, 1000, true, 0.001, ""};
  const json answer = parsed_answer({judge(report), members_of(report)});
  EXPECT_EQ(answer["verdict"], "fails");
  EXPECT_EQ(answer["gpus"][0]["host_to_device_bytes_per_second"], 25'000'000'000);
  EXPECT_TRUE(answer["gpus"][0]["kernel_right"].is_null());
  EXPECT_EQ(answer["nccl"]["bus_bytes_per_second"], 1'000'000);
  EXPECT_DOUBLE_EQ(answer["nccl"]["seconds"].get<double>(), 0.001);
}

TEST(ProbeReport, IsJudgedByItsFirstProblem) {
  Report report;
  EXPECT_EQ(judge(report).verdict, Verdict::works);
  EXPECT_EQ(exit_status(Verdict::works), 0);
  EXPECT_EQ(exit_status(Verdict::no_driver), 3);
  report.nccl.emplace().problem = "last";
  EXPECT_EQ(judge(report).reason, "NCCL: last");
  report.pairs.push_back({0, 1, true, 1.0, "second"});
  EXPECT_EQ(judge(report).reason, "GPU 0 to 1: second");
  report.gpus.emplace_back().problem = "first";
  EXPECT_EQ(judge(report).reason, "GPU 0: first");
}

TEST(ProbeAside, TheLastReportAndTheVerdictCount) {
  Report early;
  early.cuda_version = "13.0";
  const std::string told = "doing cuInit\nreport " + members_of(early) + "\n";
  const json works =
      parsed_answer(read_lines(told + "verdict no-gpu\twhy not\tdo this\n", "ended"));
  EXPECT_EQ(works["verdict"], "no-gpu");
  EXPECT_EQ(works["reason"], "why not");
  EXPECT_EQ(works["advice"], "do this");
  EXPECT_EQ(works["driver"]["cuda_version"], "13.0");
}

TEST(ProbeAside, WhatEndsWithoutAVerdictSaysWhatItWasDoing) {
  Report early;
  early.cuda_version = "13.0";
  const std::string told = "doing cuInit\nreport " + members_of(early) + "\ndoing the kernel\n";
  const json cut = parsed_answer(read_lines(told + "verdict works\t", "it crashed"));
  EXPECT_EQ(cut["verdict"], "fails");
  EXPECT_EQ(cut["reason"], "it crashed at: the kernel");
  EXPECT_EQ(cut["driver"]["cuda_version"], "13.0");
  EXPECT_TRUE(cut["advice"].is_null());
  for (const char* nothing : {"", "\n\n", "verdict\n", "verdict works\n", "report {\"x\":"}) {
    const json answer = parsed_answer(read_lines(nothing, "it ended"));
    EXPECT_EQ(answer["verdict"], "fails") << nothing;
    EXPECT_EQ(answer["reason"], "it ended") << nothing;
    EXPECT_TRUE(answer["gpus"].empty());
  }
}

TEST(ProbeErrors, HaveNamesAndAdvice) {
  EXPECT_STREQ(known_name(100), "CUDA_ERROR_NO_DEVICE");
  EXPECT_STREQ(known_name(35), "cudaErrorInsufficientDriver");
  EXPECT_STREQ(known_name(803), "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH");
  EXPECT_STREQ(known_name(804), "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE");
  EXPECT_STREQ(known_name(5), "");
  for (const Status status : {35, 100, 222, 802, 803, 804, 999}) {
    EXPECT_STRNE(advice_for(status), "") << status;
  }
  EXPECT_STREQ(advice_for(1), "");
}

TEST(ProbeErrors, EachOfTheDriversHasItsOwnVerdict) {
  const std::vector<std::pair<Status, std::string>> told = {
      {34, "no-driver"},        {100, "no-gpu"},
      {101, "no-gpu"},          {35, "driver-too-old"},
      {36, "driver-too-old"},   {46, "busy"},
      {802, "not-ready"},       {2, "busy"},
      {803, "driver-mismatch"}, {804, "compat-refused"},
      {304, "driver-fails"},    {999, "driver-fails"},
      {12345, "driver-fails"}};
  for (const auto& [status, verdict] : told) {
    EXPECT_EQ(name_of(verdict_for(status)), verdict) << status;
    EXPECT_EQ(verdict_named(verdict), verdict_for(status));
    EXPECT_EQ(exit_status(verdict_for(status)), 3);
  }
  EXPECT_EQ(verdict_named("works"), Verdict::works);
  EXPECT_EQ(verdict_named("of another version"), Verdict::fails);
}

TEST(ProbeLibraries, ThatAreAbsentOrLackAFunctionSayWhich) {
  EXPECT_THROW(Shared({"/nonexistent/libcuda.so.1"}), LibraryError);
  const Shared libc({"/nonexistent/libc.so", "libc.so.6"});
  EXPECT_NE(libc.find("strlen"), nullptr);
  EXPECT_EQ(libc.find("cuInit"), nullptr);
  EXPECT_TRUE(libc.file().ends_with("libc.so.6"));
}

TEST(ProbeNccl, VersionsAreRead) {
  EXPECT_EQ(nccl_version(22803), "2.28.3");
  EXPECT_EQ(nccl_version(20905), "2.9.5");
  EXPECT_EQ(nccl_version(2708), "2.7.8");
}

TEST(ProbeKernel, ThePtxHasTheConstantsOfWhatIsChecked) {
  const std::string_view ptx = kKernel;
  EXPECT_NE(ptx.find(std::string(".entry ") + kKernelName), std::string_view::npos);
  EXPECT_NE(ptx.find(std::to_string(kFactor)), std::string_view::npos);
  EXPECT_TRUE(ptx.starts_with(".version 6.0\n.target sm_50\n"));
  EXPECT_EQ(computed(2, 5, 1), 2 * kFactor + 4);
}

}  // namespace
}  // namespace mlenv::probe
