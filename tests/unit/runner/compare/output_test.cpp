#include "runner/compare/output.hpp"

#include <gtest/gtest.h>

namespace mlenv::compare {
namespace {

TEST(CompareOutput, WhatOurScriptsSay) {
  const Said said = read_said(
      "a framework's chatter\nmlenv-compare value train.step 0.0125\n"
      "mlenv-compare text train.step PyTorch 2.15.0, cpu\nmlenv-compare why x no such thing\n"
      "mlenv-compare value y nonsense\n mlenv-compare value z 1\n");
  EXPECT_EQ(said.values, (std::map<std::string, double>{{"train.step", 0.0125}}));
  EXPECT_EQ(said.texts.at("train.step"), "PyTorch 2.15.0, cpu");
  EXPECT_EQ(said.whys.at("x"), "no such thing");
  EXPECT_EQ(read_mark("mlenv-compare mark import"), "import");
  EXPECT_EQ(read_mark("mlenv-compare value import 1"), std::nullopt);
}

TEST(CompareOutput, NumbersThatAreNone) {
  for (const char* const bad : {"nan", "inf", "-inf", "1e999", "1 2", "1x", ""}) {
    const Said said = read_said(std::string("mlenv-compare value train.step ") + bad + "\n");
    EXPECT_TRUE(said.values.empty()) << bad;
  }
}

TEST(CompareOutput, WhatACommandTook) {
  const auto used =
      read_used("warning\nmlenv-compare-used {\"cpu\": 1.5, \"memory\": 2048}\nand a line after\n");
  ASSERT_TRUE(used.has_value());
  EXPECT_DOUBLE_EQ(used->cpu, 1.5);
  EXPECT_DOUBLE_EQ(used->memory, 2048);
  for (const char* const bad : {"mlenv-compare-used ", "mlenv-compare-used nothing\n",
                                "mlenv-compare-used {\"cpu\": \"x\", \"memory\": 1}\n",
                                "mlenv-compare-used {\"cpu\"", ""}) {
    EXPECT_FALSE(read_used(bad).has_value()) << bad;
  }
}

TEST(CompareOutput, Sysbench) {
  EXPECT_DOUBLE_EQ(*read_tool("cpu.integer", "CPU speed:\n    events per second:  3027.34\n"),
                   3027.34);
  EXPECT_DOUBLE_EQ(*read_tool("memory.bandwidth", "6656.00 MiB transferred (6600.50 MiB/sec)\n"),
                   6600.5 * 1048576);
  EXPECT_FALSE(read_tool("cpu.integer", "FATAL: invalid option\n").has_value());
}

TEST(CompareOutput, StressNg) {
  constexpr const char* kText =
      "stress-ng: info:  [2] setting to a 1 second run per stressor\n"
      "stress-ng: metrc: [2] stressor       bogo ops real time  usr time  sys time   bogo ops/s\n"
      "stress-ng: metrc: [2] matrix              623      1.00      0.96      0.01       622.89"
      "         642.31\n"
      "stress-ng: metrc: [2] miscellaneous metrics:\n";
  EXPECT_DOUBLE_EQ(*read_tool("cpu.float", kText), 622.89);
  EXPECT_FALSE(read_tool("cpu.float", "stress-ng: info: [2] matrix is not there\n").has_value());
}

TEST(CompareOutput, Fio) {
  constexpr const char* kText =
      "note: a line before\n{\"jobs\":[{\"read\":{\"bw_bytes\":1000,\"iops\":250.5},"
      "\"write\":{\"bw_bytes\":0},\"sync\":{\"lat_ns\":{\"mean\":1500000.0}}}]}\na line after";
  EXPECT_DOUBLE_EQ(*read_tool("disk.read", kText), 1000);
  EXPECT_DOUBLE_EQ(*read_tool("disk.random", kText), 250.5);
  EXPECT_DOUBLE_EQ(*read_tool("disk.fsync", kText), 0.0015);
  EXPECT_FALSE(read_tool("disk.write", kText).has_value()) << "nothing was written";
  EXPECT_FALSE(read_tool("disk.read", "fio: pid=1, err=22").has_value());
}

TEST(CompareOutput, Iperf3) {
  constexpr const char* kText =
      "{\"end\":{\"streams\":[{\"sender\":{\"mean_rtt\":42}}],\"sum_received\":"
      "{\"bits_per_second\":8e9}}}";
  EXPECT_DOUBLE_EQ(*read_tool("network.bandwidth", kText), 1e9);
  EXPECT_DOUBLE_EQ(*read_tool("network.latency", kText), 42e-6);
}

TEST(CompareOutput, ReasonsOfFailures) {
  EXPECT_EQ(complaint_of(R"({"schema":"mlenv.error/1","code":"x","frames":["a","b"],"hint":null})"),
            "a: b");
  EXPECT_EQ(complaint_of(R"({"error":"unable to connect"})"), "unable to connect");
  EXPECT_EQ(complaint_of("first\nlast words\n\nhint: do this\n"), "last words");
  EXPECT_EQ(complaint_of(""), "");
  EXPECT_EQ(complaint_of("\x1b[31mred"), complaint_of("\x1b[31mred"));
  EXPECT_EQ(complaint_of("\x1b[31mred").find('\x1b'), std::string::npos);
}

TEST(CompareOutput, TheKernelsFiles) {
  EXPECT_DOUBLE_EQ(*available_bytes("MemTotal: 10 kB\nMemAvailable:    2048 kB\n"), 2097152);
  EXPECT_FALSE(available_bytes("MemTotal: 10 kB\n").has_value());
  const auto times = read_cpu_times("cpu  10 0 20 60 5 0 1 4 0 0\ncpu0 1 1 1 1 1 1 1 1\n");
  ASSERT_TRUE(times.has_value());
  EXPECT_DOUBLE_EQ(times->all, 100);
  EXPECT_DOUBLE_EQ(times->busy, 31);
  EXPECT_DOUBLE_EQ(times->steal, 4);
  EXPECT_FALSE(read_cpu_times("cpu 1 2").has_value());
}

TEST(CompareOutput, OfSeveralToolsEachHasItsOwn) {
  const auto tools = read_tools(
      "mlenv-compare tool cpu.integer\nevents per second: 12\n\nmlenv-compare status 0\nnoise\n"
      "mlenv-compare tool disk.read\nfio: no room\nmlenv-compare status 1\n"
      "mlenv-compare tool disk.write\nhalf");
  ASSERT_EQ(tools.size(), 3U);
  EXPECT_EQ(read_tool("cpu.integer", tools.at("cpu.integer").text), 12);
  EXPECT_EQ(tools.at("cpu.integer").status, 0);
  EXPECT_EQ(tools.at("disk.read").status, 1);
  EXPECT_EQ(complaint_of(tools.at("disk.read").text), "fio: no room");
  EXPECT_FALSE(tools.at("disk.write").status.has_value());
  EXPECT_TRUE(read_tools("mlenv-compare status 0\n").empty());
}

}  // namespace
}  // namespace mlenv::compare
