import CMPV
import LibC
import NIOConcurrencyHelpers
import PodcastModel

/// Watches the list of sound devices with a separate instance of libmpv and a separate thread.
///
/// libmpv’s listener ends with the sound server, and with PipeWire it waits forever for a server that ends during a
/// request (mpv 0.35, `for_each_sink` in `ao_pipewire.c`). Playback must not wait for it: a watch that hangs is
/// abandoned and replaced.
final class MPVDeviceWatch: Sendable {
    private struct State {
        var waker: MPVWaker?
        var isEnded = false
    }

    private let state = NIOLockedValueBox(State())

    /// Reports the devices now and after each change until `end`.
    init(report: @escaping @Sendable ([OutputDevice]) -> Void) {
        SystemThread(stackSize: MPVEngine.stackSize) { [state] in Self.run(state, report) }?.detach()
    }

    func end() {
        state.withLockedValue { state in
            state.isEnded = true
            state.waker?.wake()
        }
    }

    private static func run(_ state: NIOLockedValueBox<State>, _ report: @Sendable ([OutputDevice]) -> Void) {
        // The engine reports failures of libmpv.
        guard let core = try? MPVCore(audioOutputs: "null") else { return }
        state.withLockedValue { $0.waker = core.waker }
        core.observe("audio-device-list", as: MPV_FORMAT_NODE)
        while !state.withLockedValue(\.isEnded) {
            guard let devices = devices(in: core.wait(seconds: -1)) else { continue }
            state.withLockedValue { if !$0.isEnded { report(devices) } }
        }
        state.withLockedValue { $0.waker = nil }
        core.destroy()
    }

    private static func devices(in event: mpv_event) -> [OutputDevice]? {
        guard event.event_id == MPV_EVENT_PROPERTY_CHANGE,
            let property = event.data?.assumingMemoryBound(to: mpv_event_property.self).pointee,
            property.format == MPV_FORMAT_NODE, let data = property.data,
            case .list(let items) = MPVValue(data.load(as: mpv_node.self))
        else { return nil }
        return items.compactMap { item in
            guard case .map(let map) = item, let name = map["name"]?.text else { return nil }
            return OutputDevice(name: name, description: map["description"]?.text ?? name)
        }
    }
}
