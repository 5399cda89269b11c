// What NVIDIA's container toolkit says of a host: its own generator of CDI specifications, over the
// NVML that its makers test it with.
//
//	cdi_oracle HOOK <GPUS
//
// HOOK is nvidia-cdi-hook; GPUS has a line for each GPU, in NVML's order: minor, UUID, address on the
// bus; and behind it one for each part that it is split into: `MIG`, UUID, its GPU instance, its
// compute instance. The specification goes to standard output.
package main

import (
	"bufio"
	"fmt"
	"log"
	"os"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/gpus"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"
	"github.com/NVIDIA/nvidia-container-toolkit/pkg/nvcdi"
)

func require(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func gpu(index, minor int, uuid, address string) *server.Device {
	device := server.NewDeviceFromConfig(gpus.A100_SXM4_40GB, index)
	device.Minor = minor
	device.UUID = uuid
	device.PciBusID = address
	device.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) {
		info := nvml.PciInfo{PciDeviceId: device.Config.PciDeviceId}
		for i := range address {
			info.BusId[i] = int8(address[i])
		}
		return info, nvml.SUCCESS
	}
	return device
}

// split makes a part of the GPU: an instance of the smallest profile, whole.
func split(parent *server.Device, uuid string, gi, ci int) nvml.Device {
	profile := parent.Config.MIGProfiles.GpuInstanceProfiles[nvml.GPU_INSTANCE_PROFILE_1_SLICE]
	instance := server.NewGpuInstanceFromInfo(nvml.GpuInstanceInfo{Device: parent, Id: uint32(gi), ProfileId: profile.Id},
		parent.Config.MIGProfiles)
	compute, result := instance.GetComputeInstanceProfileInfo(nvml.COMPUTE_INSTANCE_PROFILE_1_SLICE, 0)
	if result != nvml.SUCCESS {
		log.Fatal(result)
	}
	instance.GetComputeInstanceByIdFunc = func(int) (nvml.ComputeInstance, nvml.Return) {
		return server.NewComputeInstanceFromInfo(nvml.ComputeInstanceInfo{Device: parent, GpuInstance: instance,
			Id: uint32(ci), ProfileId: compute.Id}), nvml.SUCCESS
	}
	parent.MigMode = nvml.DEVICE_MIG_ENABLE
	parent.GetGpuInstanceByIdFunc = func(int) (nvml.GpuInstance, nvml.Return) { return instance, nvml.SUCCESS }
	return &mock.Device{
		IsMigDeviceHandleFunc: func() (bool, nvml.Return) { return true, nvml.SUCCESS },
		GetUUIDFunc:           func() (string, nvml.Return) { return uuid, nvml.SUCCESS },
		GetGpuInstanceIdFunc:  func() (int, nvml.Return) { return gi, nvml.SUCCESS },
		GetComputeInstanceIdFunc: func() (int, nvml.Return) {
			return ci, nvml.SUCCESS
		},
		GetAttributesFunc: func() (nvml.DeviceAttributes, nvml.Return) {
			return nvml.DeviceAttributes{MemorySizeMB: profile.MemorySizeMB}, nvml.SUCCESS
		},
		GetDeviceHandleFromMigDeviceHandleFunc: func() (nvml.Device, nvml.Return) { return parent, nvml.SUCCESS },
	}
}

func host() *server.Server {
	made := server.NewServerWithGPUs("", "", 0)
	parts := map[string]nvml.Device{}
	of := map[*server.Device][]nvml.Device{}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var minor, gi, ci int
		var uuid, address string
		if count, _ := fmt.Sscanf(lines.Text(), "MIG %s %d %d", &uuid, &gi, &ci); count == 3 {
			parent := made.Devices[len(made.Devices)-1].(*server.Device)
			parts[uuid] = split(parent, uuid, gi, ci)
			of[parent] = append(of[parent], parts[uuid])
			continue
		}
		_, err := fmt.Sscanf(lines.Text(), "%d %s %s", &minor, &uuid, &address)
		require(err)
		made.Devices = append(made.Devices, gpu(len(made.Devices), minor, uuid, address))
	}
	if len(made.Devices) == 0 {
		log.Fatal("no GPUs")
	}
	for _, device := range made.Devices {
		own := of[device.(*server.Device)]
		device.(*server.Device).GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return len(own), nvml.SUCCESS }
		device.(*server.Device).GetMigDeviceHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
			return own[i], nvml.SUCCESS
		}
	}
	whole := made.DeviceGetHandleByUUIDFunc
	made.DeviceGetHandleByUUIDFunc = func(uuid string) (nvml.Device, nvml.Return) {
		if part, found := parts[uuid]; found {
			return part, nvml.SUCCESS
		}
		return whole(uuid)
	}
	return made
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: cdi_oracle HOOK <GPUS")
	}
	byIndex, err := nvcdi.NewDeviceNamer(nvcdi.DeviceNameStrategyIndex)
	require(err)
	byUUID, err := nvcdi.NewDeviceNamer(nvcdi.DeviceNameStrategyUUID)
	require(err)
	generator, err := nvcdi.New(nvcdi.WithNvmlLib(host()), nvcdi.WithMode(nvcdi.ModeNvml),
		nvcdi.WithDeviceNamers(byIndex, byUUID), nvcdi.WithNVIDIACDIHookPath(os.Args[1]))
	require(err)
	spec, err := generator.GetSpec()
	require(err)
	_, err = spec.WriteTo(os.Stdout)
	require(err)
}
