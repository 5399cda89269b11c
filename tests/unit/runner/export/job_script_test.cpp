#include "runner/export/job_script.hpp"

#include <gtest/gtest.h>
#include <algorithm>

#include "base/process.hpp"
#include "base/text.hpp"
#include "runner/export/job_script_text.hpp"
#include "runner/job/frameworks.hpp"
#include "runner/job/plan.hpp"
#include "runner/launch/slurm_script.hpp"
#include "runner/local/option_words.hpp"
#include "runner/node/run_command.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv::job {
namespace {

constexpr std::uint16_t kFirstPort = 21000;

JobScript script_of(const Job& job) {
  JobScript script;
  script.job = job;
  script.name = "try";
  script.files = "try.d";
  script.digest = "sha256:" + std::string(64, 'a');
  script.blobs = {script.digest, "sha256:" + std::string(64, 'b')};
  script.program = std::string(64, 'c');
  script.argv = {"true"};
  script.gpus = job.gpus_per_node ? std::to_string(*job.gpus_per_node) : "";
  return script;
}

std::string by_bash(const std::string& script) {
  Command command{Purpose{"test"}};
  command.argv = {"/bin/bash", "-c", "set -euo pipefail\n" + script};
  const Captured told = run_captured(command, std::chrono::seconds(30));
  EXPECT_EQ(told.exit.code, 0) << told.err << script;
  return told.out;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (const std::string_view line : split(text, '\n')) {
    if (!line.empty()) lines.emplace_back(line);
  }
  return lines;
}

std::vector<Place> places_of(const Job& job) {
  std::vector<Place> places;
  for (std::uint64_t i = 0; i < job.nodes.most; ++i) {
    Place place;
    place.name = fmt::format("n{}", i);
    place.address = fmt::format("10.0.0.{}", i + 1);
    place.interface = fmt::format("eth{}", i);
    place.gpus = job.gpus_per_node.value_or(0);
    for (std::size_t port = 0; port < ports_needed(job); ++port) {
      place.ports.push_back(static_cast<std::uint16_t>(kFirstPort + port));
    }
    places.push_back(place);
  }
  return places;
}

/// What tell() of the script says of each rank, when it runs on those places.
std::vector<std::string> told_by_script(const Job& job, const std::vector<Place>& places,
                                        std::uint64_t rank) {
  std::string text = fmt::format(
      "nodes={} ranks_per_node={} restarts={} world={} restart=0 first_port={} ports={} job=J1\n",
      job.nodes.most, job.ranks_per_node, job.restarts, job.nodes.most * job.ranks_per_node,
      kFirstPort, ports_needed(job));
  std::vector<std::string> names;
  std::vector<std::string> addresses;
  std::vector<std::string> interfaces;
  std::vector<std::string> gpus;
  for (const Place& place : places) {
    names.push_back(place.name);
    addresses.push_back(place.address);
    interfaces.push_back(place.interface);
    gpus.push_back(std::to_string(place.gpus));
  }
  text += bash_array("names", names) + bash_array("addresses", addresses);
  text += bash_array("interfaces", interfaces) + bash_array("gpus", gpus);
  text += bash_tell(script_of(job));
  text += fmt::format("tell {}\nprintf '%s\\n' \"${{told[@]}}\"\n", rank);
  std::vector<std::string> told = lines_of(by_bash(text));
  std::sort(told.begin(), told.end());
  return told;
}

void expect_same(const Job& job) {
  const std::vector<Place> places = places_of(job);
  for (const Rank& rank : plan(job, places, "J1", 0).ranks) {
    std::vector<std::string> expected = rank.env;
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(told_by_script(job, places, rank.rank), expected) << rank.rank;
  }
}

Job job_with(Framework framework, Strategy strategy = Strategy::allreduce) {
  Job job;
  job.nodes = {2, 2};
  job.ranks_per_node = 2;
  job.framework = framework;
  job.strategy = strategy;
  job.restarts = 3;
  return job;
}

TEST(JobScript, tells_ranks_what_the_controller_tells_them) {
  for (const Framework framework :
       {Framework::none, Framework::torch, Framework::jax, Framework::tensorflow}) {
    expect_same(job_with(framework));
  }
  expect_same(job_with(Framework::torch, Strategy::plain));
  Job jax = job_with(Framework::jax);
  jax.gpus_per_node = 5;
  jax.checkpoints = Mount{"/shared/x", "/check points", false};
  expect_same(jax);
  Job tensorflow = job_with(Framework::tensorflow);
  tensorflow.gpus_per_node = 1;  // fewer than ranks
  expect_same(tensorflow);
}

TEST(JobScript, tells_roles_of_parameter_servers) {
  Job job = job_with(Framework::tensorflow, Strategy::parameter_server);
  job.ranks_per_node = 3;
  job.roles = {true, 2, true};
  expect_same(job);
  job.framework = Framework::jax;
  job.roles = {false, 1, false};
  expect_same(job);
}

/// What take_described() of the script makes of what two nodes say.
std::string described(const std::string& said) {
  return by_bash("name=try nodes=2\nnames=() addresses=() interfaces=() gpus=()\n" +
                 bash_node(script_of(job_with(Framework::none))) + "if take_described " +
                 shell_word(said) + " 2>&1; then declare -p names addresses interfaces gpus; fi\n");
}

TEST(JobScript, takes_what_nodes_say_of_themselves) {
  const std::string taken =
      described("welcome\nNODE 1 n2 10.0.0.2 eth0 4\nNODE\tx\nNODE 0 n1 - - 0\n");
  EXPECT_NE(taken.find("cannot be: $'NODE\\tx'"), std::string::npos) << taken;
  const std::string good = described("welcome $(exit)\nNODE 1 n2 10.0.0.2 eth0 4\nNODE 0 n1 - - 0");
  EXPECT_NE(good.find("names=([0]=\"n1\" [1]=\"n2\")"), std::string::npos) << good;
  EXPECT_NE(good.find("addresses=([0]=\"\" [1]=\"10.0.0.2\")"), std::string::npos) << good;
  EXPECT_NE(good.find("interfaces=([0]=\"\" [1]=\"eth0\")"), std::string::npos) << good;
  EXPECT_NE(good.find("gpus=([0]=\"0\" [1]=\"4\")"), std::string::npos) << good;
  EXPECT_NE(described("NODE 0 n1 - - 0").find("1 of 2 nodes"), std::string::npos);
}

TEST(JobScript, nothing_that_a_node_says_is_run) {
  const TemporaryFolder folder{temporary_root()};
  const fs::path trap = folder.path() / "trap";
  const std::string evil = "a[$(>" + trap.string() + ")]";
  for (const std::string& said :
       {"NODE " + evil + " n1 10.0.0.1 eth0 0", "NODE 0 n1 10.0.0.1 eth0 " + evil,
        "NODE 0 " + evil + " 10.0.0.1 eth0 0", "NODE 0 n1 " + evil + " eth0 0",
        "NODE 0 n1 10.0.0.1 " + evil + " 0", "NODE 0 n1 10.0.0.1 eth0 0 " + evil,
        std::string{"NODE 2 n3 10.0.0.3 eth0 0"}, std::string{"NODE 08 n3 10.0.0.3 eth0 0"},
        std::string{"NODE -1 n3 10.0.0.3 eth0 0"},
        std::string{"NODE 0 n1 10.0.0.1 eth0 0\nNODE 0 n2 10.0.0.2 eth0 0"}}) {
    const std::string told = described(said);
    EXPECT_NE(told.find("try: a node says of itself what cannot be: NODE"), std::string::npos)
        << said << " " << told;
    EXPECT_EQ(told.find("declare"), std::string::npos) << told;
  }
  EXPECT_NE(described(evil + "\n" + evil + " NODE").find("0 of 2 nodes"), std::string::npos);
  EXPECT_FALSE(fs::exists(trap));
}

TEST(JobScript, words_reach_bash_as_they_are) {
  const std::vector<std::string> words = {
      "plain", "", "it's", "a \"b\" $c `d`", "-v", "/a b:/c:ro", std::string(200, 'x'), "*", "\\"};
  const std::string text = bash_array("words", words) + "printf '%s\\n' \"${words[@]}\"";
  std::string expected;
  for (const std::string& word : words) expected += word + "\n";
  EXPECT_EQ(by_bash(text), expected);
}

/// Text of others stands in a script in quotes alone: in no comment's next line, no name that bash
/// looks up, and without a mark that would have bash look into it.
TEST(JobScript, no_text_of_others_is_run) {
  const TemporaryFolder folder{temporary_root()};
  const fs::path trap = folder.path() / "trap";
  const std::string touch = "$(touch " + trap.string() + ")";
  JobScript script = script_of(job_with(Framework::none));
  script.name = script.files =
      "x\ntouch " + trap.string() + "\n" + touch + "`touch " + trap.string() + "`'}";
  script.hosts = {{"a", 0, "", "", 0}, {"b", 0, "", "", 0}};
  for (const char* const mark : {"", "\1", "\1\"", "'", "\n", "-"}) {
    const std::string odd = mark + touch;
    script.argv = {odd};
    script.env = {odd + "=" + odd, "A=" + odd};
    script.workdir = odd;
    Mount mount;
    mount.source = odd;
    mount.target = "/" + odd;
    script.mounts = {mount};
    script.job.interface = odd;
    script.job.options.user = odd;
    for (const auto form : {JobScript::Form::slurm, JobScript::Form::ssh, JobScript::Form::mpi}) {
      script.form = form;
      script.with = JobScript::With::builtin;
      Command command{Purpose{"test"}};
      // Nothing of it is there: it ends by itself.
      write_file(folder.path() / "script", job_script(script));
      command.argv = {"/bin/bash", (folder.path() / "script").string()};
      command.env = std::vector<std::string>{"PATH=/usr/bin:/bin", "SLURM_JOB_ID=1"};
      const Captured ran = run_captured(command, std::chrono::seconds(30));
      EXPECT_NE(ran.err.find("what this job needs is not in "), std::string::npos) << ran.err;
      EXPECT_NE(ran.err.find(script.files), std::string::npos) << ran.err;
      EXPECT_FALSE(fs::exists(trap)) << job_script(script);
    }
  }
  for (const char* const name : {"x[$(id)]", "A B", "A;id;B", "1A", "A\nid", "", "\1id"}) {
    for (const std::string& one : {name + std::string("_TOKEN=1"), std::string(name)}) {
      script.env = {one};
      if (one == "_TOKEN=1") continue;
      EXPECT_EQ(code_of([&] { (void)job_script(script); }), "bad-job") << one;
    }
  }
}

TEST(JobScript, a_variable_of_the_callers_is_looked_up_when_it_starts) {
  JobScript script = script_of(job_with(Framework::none));
  script.env = {"TOKEN"};
  const std::string text = job_script(script);
  EXPECT_NE(text.find("\"TOKEN=${TOKEN?"), std::string::npos) << text;
}

TEST(JobScript, holds_no_secret_and_passes_variables_by_a_pipe) {
  JobScript script = script_of(job_with(Framework::none));
  script.env = {"HF_TOKEN=verysecret", "INDEX=https://me:word@host/", "PLAIN=seen"};
  script.hosts = {{"a", 0, "", "", 0}, {"b", 0, "", "", 0}};
  for (const auto form : {JobScript::Form::slurm, JobScript::Form::ssh, JobScript::Form::mpi}) {
    script.form = form;
    const std::string text = job_script(script);
    EXPECT_EQ(text.find("verysecret"), std::string::npos) << text;
    EXPECT_EQ(text.find("me:word"), std::string::npos) << text;
    EXPECT_NE(text.find("\"HF_TOKEN=${HF_TOKEN?"), std::string::npos) << text;
    EXPECT_NE(text.find("PLAIN=seen"), std::string::npos) << text;
    EXPECT_EQ(text.find("-e PLAIN"), std::string::npos) << text;  // no argument
    EXPECT_NE(text.find("--env-fd 9"), std::string::npos) << text;
  }
  // As it comes out at the other end.
  const std::string shell =
      "env=('A=b c' $'B=x\\ny')\ngive_env() { printf '%s\\0' \"${env[@]}\" ''; }\n" +
      bash_rank(script) +
      "passed() { take_env; printf '<%s>' \"${env[@]}\"; cat; }\n"
      "passed < <(give_env && echo beat)\n";
  EXPECT_EQ(by_bash(shell), "<A=b c><B=x\ny>beat\n");
}

TEST(JobScript, refuses_what_a_script_cannot_do) {
  JobScript elastic = script_of(job_with(Framework::none));
  elastic.job.nodes = {1, 2};
  EXPECT_EQ(code_of([&] { job_script(elastic); }), "bad-job");
  JobScript devices = script_of(job_with(Framework::none));
  devices.job.options.rdma = true;
  EXPECT_EQ(code_of([&] { job_script(devices); }), "bad-job");
  JobScript ssh = script_of(job_with(Framework::none));
  ssh.form = JobScript::Form::ssh;
  EXPECT_EQ(code_of([&] { job_script(ssh); }), "bad-hosts");
  ssh.hosts = {{"a", 0, "", "", 0}, {"b", 0, "", "jo", 22}};
  EXPECT_NE(job_script(ssh).find("hosts=(a ssh://jo@b:22)"), std::string::npos);
  ssh.with = JobScript::With::apptainer;
  EXPECT_EQ(code_of([&] { job_script(ssh); }), "bad-job");
  JobScript mpi = script_of(job_with(Framework::none));
  mpi.form = JobScript::Form::mpi;
  mpi.with = JobScript::With::pyxis;
  EXPECT_EQ(code_of([&] { job_script(mpi); }), "bad-job");
  // Its containers reach each other by the controller.
  EXPECT_EQ(code_of([] { job_script(script_of(job_with(Framework::mpi, Strategy::mpi))); }),
            "bad-job");
}

TEST(JobScript, is_deterministic_by_mlenv_node_alone) {
  JobScript script = script_of(job_with(Framework::none));
  EXPECT_EQ(job_script(script).find("--deterministic"), std::string::npos);
  script.seed = 7;
  EXPECT_NE(job_script(script).find("--deterministic 7"), std::string::npos);
  for (const auto with : {JobScript::With::pyxis, JobScript::With::apptainer}) {
    script.with = with;
    EXPECT_EQ(code_of([&] { job_script(script); }), "bad-job");
  }
}

TEST(NodeRun, options_are_read_as_they_are_written) {
  JobOptions options;
  options.limits.memory_bytes = std::uint64_t{1} << 30U;
  options.limits.memory_swap_bytes = std::uint64_t{1} << 31U;
  options.limits.cpus = 1.5;
  options.limits.cpuset = "0-1";
  options.limits.pids = 100;
  options.ulimits = {{"nofile", 1024, 2048}, {"memlock", std::nullopt, std::nullopt}};
  options.shm_bytes = std::uint64_t{64} << 20U;
  options.tmpfs = {parse_tmpfs("/scratch:size=64m,mode=1777")};
  options.read_only = true;
  options.user = "1000:1000";
  options.groups = {"video"};
  options.hostname = "rank";
  std::vector<std::string> words = option_words(options);
  words.insert(words.end(),
               {"-e", "A=b c", "--while-open", "--silence", "10", "--deterministic", "4294967295",
                "--add-host", "n1:10.0.0.1", "sha256:x", "--", "sh", "-c", "true"});
  const NodeRunWords read = parse_node_run(words);
  EXPECT_EQ(read.run.options, options);
  EXPECT_EQ(read.run.env, std::vector<std::string>{"A=b c"});
  EXPECT_EQ(read.run.argv, (std::vector<std::string>{"sh", "-c", "true"}));
  EXPECT_EQ(read.hosts, "10.0.0.1 n1\n");
  EXPECT_TRUE(read.while_open);
  EXPECT_EQ(read.silence, std::chrono::seconds{10});
  EXPECT_EQ(parse_node_run({"--while-open", "x"}).silence, std::nullopt);
  EXPECT_EQ(code_of([] { parse_node_run({"--silence", "10", "x"}); }), "usage");
  for (const char* wrong : {"0", "-1", "1s", "", "99999999999"}) {
    EXPECT_EQ(code_of([&] { parse_node_run({"--while-open", "--silence", wrong, "x"}); }), "usage");
  }
  EXPECT_EQ(read.seed, 4294967295U);
  EXPECT_EQ(parse_node_run({"--env-fd", "9", "x"}).env_fd, 9);
  for (const char* wrong : {"2", "-1", "x", "", "1e9"}) {
    EXPECT_EQ(code_of([&] { parse_node_run({"--env-fd", wrong, "x"}); }), "usage") << wrong;
  }
  EXPECT_EQ(code_of([] { parse_node_run({"--deterministic", "x", "sha256:x"}); }), "usage");
  EXPECT_EQ(code_of([] { parse_node_run({"--no-such", "x"}); }), "usage");
  EXPECT_EQ(code_of([] { parse_node_run({"--", "true"}); }), "usage");
}

}  // namespace
}  // namespace mlenv::job
