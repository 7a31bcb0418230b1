import BusKit
import PodcastModel

/// The state of libmpv’s sound output.
struct MPVOutputs {
    /// The requested device; empty: the system’s default.
    var chosen = ""
    /// The device that libmpv was told to use: the chosen one, or the default where that is missing.
    var selected = ""
    /// That device has disappeared: the sound server has moved the sound elsewhere.
    var hasLeft = false
    /// The driver of the open output; nil: no output is open.
    var driver: String?
    /// There was no real driver when the output was opened last.
    var wasSilent = false
    /// The last list of devices, dummies included; nil: there is none yet.
    var listed: [OutputDevice]?
    var watch: MPVDeviceWatch?
    /// The deadline of the list that is awaited.
    var listBy: MonotonicTime?
    /// The output was opened before the awaited list: the device is then chosen again, and what is heard is reported.
    var isUnchecked = false

    /// The sound servers’ name for the sink that they make when they have none.
    static let dummy = "/auto_null"
    /// A list takes some hundredths of a second.
    static let listLimit = Duration.seconds(2)

    var isSilent: Bool? {
        guard let driver else { return nil }
        if driver == "null" { return true }
        let own = (listed ?? []).filter { $0.name.hasPrefix(driver + "/") }
        return !own.isEmpty && own.allSatisfy { $0.name.hasSuffix(Self.dummy) }
    }

    /// Whether a device is listed. One whose driver lists none at all may exist.
    func has(_ device: String) -> Bool {
        guard let slash = device.firstIndex(of: "/") else { return true }
        let own = (listed ?? []).filter { $0.name.hasPrefix(device[...slash]) }
        return own.isEmpty || own.contains { $0.name == device }
    }
}

extension MPVPlayer {
    var isListing: Bool { outputs.listBy != nil }

    // MARK: Requests

    func choose(_ device: String) {
        outputs.chosen = device
        outputs.isUnchecked = true
        use(device)
        listDevices()
    }

    /// Selects the output for a file: a silent one, or one whose device has disappeared, is opened anew.
    func prepareOutput(_ device: String) {
        outputs.chosen = device
        if outputs.listed == nil { outputs.isUnchecked = true }
        let isUnusable = outputs.hasLeft || outputs.driver == "null"
        if !use(device), isUnusable, !usesNullOutput { reopenOutput { core.command(["ao-reload"]) } }
    }

    /// Opens the output anew, except in the last moment of a file, which would be lost.
    func reloadOutput() {
        if let now = current, now.atEnd, !now.wantsPause { return }
        // The list is stale if the sound server has been away.
        if !outputs.chosen.isEmpty, outputs.driver == "null" {
            outputs.isUnchecked = true
            listDevices()
        }
        if !use(outputs.chosen) { reopenOutput { core.command(["ao-reload"]) } }
        if let driver = outputs.driver, driver != "null" { reportOutputs() }
    }

    /// Lists the devices anew, and reports them.
    func listDevices() {
        guard !usesNullOutput else { return reportOutputs(isListed: true) }
        outputs.watch?.end()
        outputs.watch = MPVDeviceWatch(report: listed)
        outputs.listBy = SystemClocks.monotonic().advanced(by: MPVOutputs.listLimit)
    }

    /// Tells libmpv to use a device, or the system’s default if that is missing.
    ///
    /// - Returns: whether the device has changed, so that libmpv opens its output anew by itself.
    @discardableResult
    private func use(_ device: String) -> Bool {
        let target = usesNullOutput || outputs.has(device) ? device : ""
        outputs.hasLeft = false
        guard target != outputs.selected else { return false }
        outputs.selected = target
        reopenOutput { core.set("audio-device", target.isEmpty ? "auto" : target) }
        return true
    }

    /// Opens the output anew at the same position: the audio that it and the filters have buffered, up to 1.3 s, is
    /// lost with it.
    private func reopenOutput(_ reopen: () -> Void) {
        let position = current?.isSeekPending == true ? current?.seekRequested?.position : presentPosition
        reopen()
        guard let now = current, now.loaded, !now.atEnd, let position else { return }
        seek(to: position, serial: now.seekRequested?.serial ?? now.load.serial)
    }

    // MARK: Reports of libmpv

    func driverChanged(_ driver: String?) {
        let before = outputs.driver
        outputs.driver = driver
        guard let driver else { return }
        if driver == "null" { outputs.wasSilent = true }
        // The previous listener has died with the sound server.
        if !usesNullOutput, outputs.watch == nil || outputs.wasSilent && driver != "null" {
            outputs.wasSilent = driver == "null"
            outputs.isUnchecked = true
            listDevices()
        } else if driver != before || !usesNullOutput {
            reportOutputs()
        }
    }

    func devicesListed(_ devices: [OutputDevice]) {
        outputs.listed = devices
        outputs.listBy = nil
        guard outputs.isUnchecked else {
            if !outputs.has(outputs.selected) { outputs.hasLeft = true }
            return reportOutputs(isListed: true)
        }
        outputs.isUnchecked = false
        let isMoving = use(outputs.chosen)
        reportOutputs(isListed: true, isMoving: isMoving && outputs.driver == "null")
    }

    /// Stops waiting for a list when its deadline has passed.
    func endListing() {
        guard let listBy = outputs.listBy, SystemClocks.monotonic() >= listBy else { return }
        outputs.listBy = nil
        outputs.isUnchecked = false
        reportOutputs(isListed: true)
    }

    private var shownDevices: [OutputDevice] {
        guard !usesNullOutput else { return [OutputDevice(name: "null", description: "No sound")] }
        return (outputs.listed ?? []).filter { !$0.name.hasSuffix(MPVOutputs.dummy) }
    }

    func reportOutputs(isListed: Bool = false, isMoving: Bool = false) {
        // Whether a dummy, or another device than the chosen one, is in use is known with the list.
        guard !outputs.isUnchecked || usesNullOutput else { return }
        let silent = usesNullOutput ? outputs.driver.map { _ in false } : outputs.isSilent
        observer(
            .outputs(
                EngineOutputs(
                    devices: isListed || usesNullOutput ? shownDevices : nil,
                    inUse: outputs.hasLeft ? "" : outputs.selected, silent: isMoving ? nil : silent)))
    }
}
