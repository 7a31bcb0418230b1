import BusKit
import PodcastModel

/// The state of libmpv’s sound output, and the device that libmpv was told to use.
struct MPVOutputs {
    /// The device that was asked for; empty: the system's default.
    var chosen = ""
    /// The device that libmpv was told to use: the chosen one, or none where that is not there.
    var told = ""
    /// The device that libmpv was told to use is not there any more: the sound server has moved the sound elsewhere.
    var hasLeft = false
    /// The driver of the open output; nil: none is open.
    var driver: String?
    /// There was no real driver when the output was opened last.
    var wasSilent = false
    /// The devices that were listed last, dummies included; nil: they never were.
    var listed: [OutputDevice]?
    /// Follows which devices there are.
    var watch: MPVDeviceWatch?
    /// Until when a new list is waited for.
    var listBy: MonotonicTime?
    /// The output was opened before the new list: with it the device is chosen again, and what is heard is told.
    var isUnchecked = false

    /// The sound servers’ name for the sink that they make when they have none.
    static let dummy = "/auto_null"
    /// A list takes some hundredths of a second.
    static let listLimit = Duration.seconds(2)

    /// Whether nothing is heard; nil: no output is open.
    var isSilent: Bool? {
        guard let driver else { return nil }
        if driver == "null" { return true }
        let own = (listed ?? []).filter { $0.name.hasPrefix(driver + "/") }
        return !own.isEmpty && own.allSatisfy { $0.name.hasSuffix(Self.dummy) }
    }

    /// Whether a device is among those listed. One whose driver lists none at all may be there.
    func has(_ device: String) -> Bool {
        guard let slash = device.firstIndex(of: "/") else { return true }
        let own = (listed ?? []).filter { $0.name.hasPrefix(device[...slash]) }
        return own.isEmpty || own.contains { $0.name == device }
    }
}

extension MPVPlayer {
    /// Whether it waits for a list of the devices.
    var isListing: Bool { outputs.listBy != nil }

    // MARK: What is asked for

    /// Moves to another device.
    func choose(_ device: String) {
        outputs.chosen = device
        outputs.isUnchecked = true
        use(device)
        listDevices()
    }

    /// The output that a file is to be opened with: a silent one, or one whose device has left, is opened anew.
    func prepareOutput(_ device: String) {
        outputs.chosen = device
        if outputs.listed == nil { outputs.isUnchecked = true }
        let isUnusable = outputs.hasLeft || outputs.driver == "null"
        if !use(device), isUnusable, !silenceIsWanted { reopenOutput { core.command(["ao-reload"]) } }
    }

    /// Opens the output anew, but for the last moment of a file, which would be lost with the output.
    func reloadOutput() {
        if let now = current, now.atEnd, !now.wantsPause { return }
        // The list is of before, where the sound server has been away.
        if !outputs.chosen.isEmpty, outputs.driver == "null" {
            outputs.isUnchecked = true
            listDevices()
        }
        if !use(outputs.chosen) { reopenOutput { core.command(["ao-reload"]) } }
        if let driver = outputs.driver, driver != "null" { reportOutputs() }
    }

    /// Has the devices listed anew: they are told when they are.
    func listDevices() {
        guard !silenceIsWanted else { return reportOutputs(isListed: true) }
        outputs.watch?.end()
        outputs.watch = MPVDeviceWatch(report: listed)
        outputs.listBy = SystemClocks.monotonic().advanced(by: MPVOutputs.listLimit)
    }

    /// Tells libmpv which device to use: this one if it is there, else the system's default.
    ///
    /// - Returns: whether that is another one than before, so that libmpv opens its output anew by itself.
    @discardableResult
    private func use(_ device: String) -> Bool {
        let target = silenceIsWanted || outputs.has(device) ? device : ""
        outputs.hasLeft = false
        guard target != outputs.told else { return false }
        outputs.told = target
        reopenOutput { core.set("audio-device", target.isEmpty ? "auto" : target) }
        return true
    }

    /// Audio that an output and the filters before it have buffered, up to 1.3 s, is lost with it and played again.
    private func reopenOutput(_ reopen: () -> Void) {
        let place = current?.isSeekPending == true ? current?.seekAsked?.position : place
        reopen()
        guard let now = current, now.loaded, !now.atEnd, let place else { return }
        seek(to: place, serial: now.seekAsked?.serial ?? now.load.serial)
    }

    // MARK: What has happened

    /// The output has been opened with another driver, or closed.
    func driverChanged(_ driver: String?) {
        let before = outputs.driver
        outputs.driver = driver
        guard let driver else { return }
        if driver == "null" { outputs.wasSilent = true }
        // The listener of before has died with the sound server.
        if !silenceIsWanted, outputs.watch == nil || outputs.wasSilent && driver != "null" {
            outputs.wasSilent = driver == "null"
            outputs.isUnchecked = true
            listDevices()
        } else if driver != before || !silenceIsWanted {
            reportOutputs()
        }
    }

    /// The devices that there are now.
    func devicesListed(_ devices: [OutputDevice]) {
        outputs.listed = devices
        outputs.listBy = nil
        guard outputs.isUnchecked else {
            if !outputs.has(outputs.told) { outputs.hasLeft = true }
            return reportOutputs(isListed: true)
        }
        outputs.isUnchecked = false
        let isMoving = use(outputs.chosen)
        // What is heard is known when the output is open.
        reportOutputs(isListed: true, isMoving: isMoving && outputs.driver == "null")
    }

    /// A list is waited for no longer.
    func endListing() {
        guard let listBy = outputs.listBy, SystemClocks.monotonic() >= listBy else { return }
        outputs.listBy = nil
        outputs.isUnchecked = false
        reportOutputs(isListed: true)
    }

    /// The devices as they are shown.
    private var shownDevices: [OutputDevice] {
        guard !silenceIsWanted else { return [OutputDevice(name: "null", description: "No sound")] }
        return (outputs.listed ?? []).filter { !$0.name.hasSuffix(MPVOutputs.dummy) }
    }

    func reportOutputs(isListed: Bool = false, isMoving: Bool = false) {
        // What is heard through a dummy, or another device than the chosen one, is known with the list.
        guard !outputs.isUnchecked || silenceIsWanted else { return }
        let silent = silenceIsWanted ? outputs.driver.map { _ in false } : outputs.isSilent
        observer(
            .outputs(
                EngineOutputs(
                    devices: isListed || silenceIsWanted ? shownDevices : nil,
                    inUse: outputs.hasLeft ? "" : outputs.told, silent: isMoving ? nil : silent)))
    }
}
