import FleetHome
import LibC
import LockstepClient
import PodcastModel

struct LibraryCheck: Sendable {
    let environment: [String: String]

    func findings() -> [Finding] {
        [Self.messaging(Fleet.messagingVersion), player(), sound()]
    }

    /// Versions of libzmq before 4.3.3 have known vulnerabilities (CVE-2019-6250, CVE-2019-13132, CVE-2020-15166).
    static func messaging(_ version: (major: Int, minor: Int, patch: Int)) -> Finding {
        let found = "libzmq \(version.major).\(version.minor).\(version.patch)"
        guard (version.major, version.minor, version.patch) >= (4, 3, 3) else {
            return .warning(
                "libzmq", "\(found) has known vulnerabilities, which were fixed in 4.3.3.",
                do: "Update it: on Debian `libzmq5`.")
        }
        return .ok("libzmq", "\(found).")
    }

    /// Opens the library in the same way as the player.
    func player() -> Finding {
        #if canImport(Darwin)
        let names = ["libmpv.2.dylib", "libmpv.1.dylib"]
        #else
        let names = ["libmpv.so.2", "libmpv.so.1"]
        #endif
        for name in names {
            guard let library = dlopen(name, RTLD_LAZY | RTLD_LOCAL) else { continue }
            guard let symbol = dlsym(library, "mpv_client_api_version") else {
                return .fault("libmpv", "\(name) isn’t libmpv.", do: "Reinstall it (Debian: `libmpv2`).")
            }
            // The symbol’s C declaration is `unsigned long mpv_client_api_version(void)`.
            let version = unsafeBitCast(symbol, to: (@convention(c) () -> UInt).self)()
            return .ok("libmpv", "\(name), interface \(version >> 16).\(version & 0xffff).")
        }
        let reason = dlerror().map { String(cString: $0) } ?? "it isn’t installed"
        return .fault(
            "libmpv", "It couldn’t be opened: \(reason).", do: "Install it: on Debian `apt install libmpv2`.")
    }

    func sound() -> Finding {
        if environment["LOCKSTEP_AO"] == "null" {
            return .ok("sound", "Turned off (ao: null); episodes play silently.")
        }
        var systems: [String] = []
        if let run = environment["XDG_RUNTIME_DIR"] {
            if FleetPresence.answers(run + "/pipewire-0") { systems.append("PipeWire") }
            if FleetPresence.answers(run + "/pulse/native") { systems.append("PulseAudio") }
        }
        if Self.hasALSADevice() { systems.append("ALSA") }
        #if canImport(Darwin)
        systems.append("Core Audio")
        #endif
        guard systems.isEmpty else { return .ok("sound", "\(systems.joined(separator: ", ")).") }
        return .warning(
            "sound", "No sound system was found; episodes play silently.",
            do: "Start PipeWire or PulseAudio in this session, or add the user to the group `audio`.")
    }

    private static func hasALSADevice() -> Bool {
        guard let folder = opendir("/dev/snd") else { return false }
        defer { closedir(folder) }
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            // The file is a playback device that this user may write to.
            if name.hasPrefix("pcm"), name.hasSuffix("p"), access("/dev/snd/" + name, W_OK) == 0 { return true }
        }
        return false
    }
}
