import CMPV
import LibC
import NIOConcurrencyHelpers
import PodcastModel
import WebClient

/// One instance of libmpv. It isn’t sendable: everything but `waker` is called on the engine’s thread.
final class MPVCore {
    /// Options for sound only, without the user’s configuration and without input.
    private static let options: [(name: String, value: String)] = [
        ("config", "no"), ("load-scripts", "no"), ("ytdl", "no"),
        // Each built-in script has a thread and an interpreter.
        ("load-stats-overlay", "no"), ("load-osd-console", "no"), ("load-auto-profiles", "no"),
        ("terminal", "no"), ("idle", "yes"),
        ("input-default-bindings", "no"), ("input-vo-keyboard", "no"), ("vo", "null"), ("vid", "no"), ("sid", "no"),
        ("audio-display", "no"), ("autoload-files", "no"), ("audio-client-name", "Lockstep"),
        // A file stays open at its end, so that its position and size can still be read.
        ("keep-open", "always"), ("keep-open-pause", "yes"),
        ("prefetch-playlist", "yes"),
        // Without a device libmpv continues silently; otherwise the file would end at once.
        ("audio-fallback-to-null", "yes"),
        // The format in which the volume is applied: with 16 bits the factors of low volumes are rounded to 0.
        ("audio-format", "float"),
        ("audio-pitch-correction", "yes"), ("hr-seek", "yes"), ("gapless-audio", "weak"),
        // A server that ignores Range can still be read up to the requested position.
        ("force-seekable", "yes"),
        // The cache holds half an hour of speech ahead of the position and a few minutes before it.
        ("cache", "auto"), ("demuxer-max-bytes", "24MiB"), ("demuxer-max-back-bytes", "6MiB"),
        ("cache-pause", "yes"), ("cache-pause-wait", "2"), ("network-timeout", "30"),
        // FFmpeg reconnects a cut stream at once and a second later; after that the player decides about retries.
        ("stream-lavf-o", "reconnect=1,reconnect_delay_max=1"),
        ("user-agent", WebClient.userAgent),
    ]

    private let functions: cmpv_functions
    private let handle: OpaquePointer

    /// - Throws: `internalError` when the library is not installed or does not start.
    init(audioOutputs: String) throws(Failure) {
        functions = try Self.library.withLockedValue { _ in Self.open() }.get()
        guard let handle = functions.create() else {
            throw Failure(.internalError, "libmpv can’t be started: it is out of memory, or LC_NUMERIC is not C.")
        }
        self.handle = handle
        for option in Self.options + [("ao", audioOutputs)] {
            // An option that another version of libmpv doesn’t know keeps its default.
            _ = functions.set_option_string(handle, option.name, option.value)
        }
        _ = functions.request_log_messages(handle, "warn")
        let result = functions.initialize(handle)
        guard result >= 0 else {
            let reason = text(ofError: result)
            functions.terminate_destroy(handle)
            throw Failure(.internalError, "libmpv can’t be started: \(reason).")
        }
    }

    func destroy() {
        functions.terminate_destroy(handle)
    }

    var waker: MPVWaker { MPVWaker(handle: handle, function: functions.wakeup) }

    /// Waits for the next event, a wake-up, or `seconds` (negative: without limit). The event is valid until the next
    /// call.
    func wait(seconds: Double) -> mpv_event {
        functions.wait_event(handle, seconds).pointee
    }

    func text(ofError code: Int32) -> String {
        String(cString: functions.error_string(code))
    }

    @discardableResult
    func command(_ arguments: [String], reply: UInt64 = 0) -> Bool {
        let copies = arguments.map { strdup($0) }
        defer { copies.forEach { free($0) } }
        var pointers: [UnsafePointer<CChar>?] = copies.map { UnsafePointer($0) } + [nil]
        return functions.command_async(handle, reply, &pointers) >= 0
    }

    func set(_ name: String, _ value: Double) {
        var value = value
        _ = functions.set_property_async(handle, 0, name, MPV_FORMAT_DOUBLE, &value)
    }

    /// Sets a property synchronously.
    func setAtOnce(_ name: String, _ value: Double) {
        var value = value
        _ = functions.set_property(handle, name, MPV_FORMAT_DOUBLE, &value)
    }

    func set(_ name: String, _ value: Bool) {
        var value: Int32 = value ? 1 : 0
        _ = functions.set_property_async(handle, 0, name, MPV_FORMAT_FLAG, &value)
    }

    func set(_ name: String, _ value: String) {
        value.withCString { text in
            var pointer: UnsafePointer<CChar>? = text
            _ = functions.set_property_async(handle, 0, name, MPV_FORMAT_STRING, &pointer)
        }
    }

    /// Sets the seek method of the next file. In an MP3 without an index libavformat otherwise reads everything before
    /// the position, which is too slow for a stream (mpv issue 6537); this method uses the share of the bytes, which is
    /// exact if the bit rate is constant.
    func seekQuickly(in source: AudioSource) {
        if case .web = source { set("demuxer-lavf-o", "fflags=+fastseek") } else { set("demuxer-lavf-o", "") }
    }

    func number(_ name: String) -> Double? {
        var value = 0.0
        guard functions.get_property(handle, name, MPV_FORMAT_DOUBLE, &value) >= 0, value.isFinite else { return nil }
        return value
    }

    func flag(_ name: String) -> Bool? {
        var value: Int32 = 0
        guard functions.get_property(handle, name, MPV_FORMAT_FLAG, &value) >= 0 else { return nil }
        return value != 0
    }

    func value(_ name: String) -> MPVValue? {
        var node = mpv_node()
        guard functions.get_property(handle, name, MPV_FORMAT_NODE, &node) >= 0 else { return nil }
        defer { functions.free_node_contents(&node) }
        return MPVValue(node)
    }

    /// Reads a list of maps, such as `chapter-list` and `audio-device-list`.
    func list(_ name: String) -> [[String: MPVValue]] {
        guard case .list(let items)? = value(name) else { return [] }
        return items.compactMap { if case .map(let map) = $0 { map } else { nil } }
    }

    /// Requests PROPERTY_CHANGE events for a property.
    func observe(_ name: String, as format: mpv_format) {
        _ = functions.observe_property(handle, 0, name, format)
    }

    /// Serialises the opening of the library, which is not thread-safe.
    private static let library = NIOLockedValueBox(())

    private static func open() -> Result<cmpv_functions, Failure> {
        var message = [CChar](repeating: 0, count: 512)
        guard let functions = cmpv_open(&message, message.count) else {
            let reason = String(decoding: message.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            return .failure(
                Failure(.internalError, "libmpv can’t be opened (\(reason)); install it, on Debian `libmpv2`."))
        }
        return .success(functions.pointee)
    }
}

/// Ends a wait of the engine’s thread.
///
/// Unchecked: libmpv allows `mpv_wakeup` from any thread while the instance exists; the engine revokes this under its
/// lock before it destroys the instance.
struct MPVWaker: @unchecked Sendable {
    fileprivate let handle: OpaquePointer
    fileprivate let function: @convention(c) (OpaquePointer) -> Void

    func wake() { function(handle) }
}

enum MPVValue {
    case text(String)
    case number(Double)
    case list([MPVValue])
    case map([String: MPVValue])
    case other

    init(_ node: mpv_node) {
        switch node.format {
        case MPV_FORMAT_STRING:
            self = node.u.string.map { .text(String(cString: $0)) } ?? .other
        case MPV_FORMAT_DOUBLE:
            self = .number(node.u.double_)
        case MPV_FORMAT_INT64:
            self = .number(Double(node.u.int64))
        case MPV_FORMAT_NODE_ARRAY:
            let list = node.u.list.pointee
            self = .list((0..<Int(list.num)).map { MPVValue(list.values[$0]) })
        case MPV_FORMAT_NODE_MAP:
            let list = node.u.list.pointee
            let pairs = (0..<Int(list.num)).compactMap { index in
                list.keys[index].map { (String(cString: $0), MPVValue(list.values[index])) }
            }
            self = .map(Dictionary(pairs) { first, _ in first })
        default:
            self = .other
        }
    }

    var text: String? { if case .text(let text) = self { text } else { nil } }
    var number: Double? { if case .number(let number) = self { number } else { nil } }
}
