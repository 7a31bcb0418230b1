import BusKit
import CProcess
import LibC
import NIOConcurrencyHelpers
import PodcastModel
import SupervisorControl
import TestSupport
import Testing

@testable import FleetSupervisor

/// A home in its own folder with programs that communicate with the supervisor like services: `/usr/bin/perl` scripts,
/// which read their behaviour at each start from a file beside them, `NAME.mode`.
final class FakeFleet: Sendable {
    private let temporary: TemporaryFolder
    var folder: String { temporary.path }
    let home: LockstepHome
    var programs: String { folder + "/bin" }
    var client: SupervisorControlClient { SupervisorControlClient(home: home) }
    var environment: [String: String] {
        ["PATH": "/usr/bin:/bin", "LOCKSTEP_HOME": folder + "/h", SupervisorLauncher.programsVariable: programs]
    }
    private let ended = NIOLockedValueBox(false)
    private let failure = NIOLockedValueBox<Failure?>(nil)

    init() throws {
        temporary = try TemporaryFolder()
        home = try LockstepHome(
            environment: ["LOCKSTEP_HOME": temporary.path + "/h"], userID: geteuid(), workingDirectory: "/",
            directoryExists: { _ in false })
        try home.prepare()
        mkdir(programs, 0o700)
        for service in FleetPlan.default.services {
            try SmallFile.replaceWhole(programs + "/" + service.program, with: Self.script, isDurable: false)
            chmod(programs + "/" + service.program, 0o700)
        }
    }

    /// Sets the service’s behaviour from its next start: `exit CODE` ends it before READY, `silent` sends nothing after
    /// READY, `stubborn` ignores SIGTERM, `mute` never sends READY, `chatty` prints a very long line.
    func setMode(_ service: String, _ mode: String) {
        try? SmallFile.replaceWhole(programs + "/\(service).mode", with: mode, isDurable: false)
    }

    var configuration: SupervisorConfiguration {
        SupervisorConfiguration(home: home, programDirectory: programs, environment: environment)
    }

    /// Runs the supervisor on its own thread until the fleet is stopped.
    func start(_ configuration: SupervisorConfiguration? = nil) throws {
        let run = Run(configuration: configuration ?? self.configuration, ended: ended, failure: failure)
        var thread = pthread_t()
        let started = pthread_create(
            &thread, nil,
            { pointer in
                guard let pointer else { return nil }
                let run = Unmanaged<Run>.fromOpaque(pointer).takeRetainedValue()
                do { try SupervisorLoop(run.configuration).run() } catch {
                    run.failure.withLockedValue { $0 = error as? Failure }
                }
                run.ended.withLockedValue { $0 = true }
                return nil
            }, Unmanaged.passRetained(run).toOpaque())
        #expect(started == 0)
        pthread_detach(thread)
        _ = eventually("the control socket answers") { (try? client.ps()) != nil || hasEnded }
        if let failure = failure.withLockedValue({ $0 }) { throw failure }
    }

    var hasEnded: Bool { ended.withLockedValue { $0 } }

    func report(_ service: String) -> ServiceReport? { try? client.ps().first { $0.name == service } }

    /// Stops all processes.
    func end() {
        _ = try? client.down()
        _ = Survivors(home: home).clear(FleetPlan.default.services)
    }

    static let script = """
        #!/usr/bin/perl
        use strict; use Socket; $| = 1;
        my ($name) = $0 =~ /lockstep-(\\w+)$/;
        my $mode = ''; if (open(my $f, '<', "$ENV{LOCKSTEP_PROGRAMS}/$name.mode")) { $mode = <$f> // ''; }
        sub tell_ { socket(my $s, AF_UNIX, SOCK_DGRAM, 0); send($s, $_[0], 0, pack_sockaddr_un($ENV{NOTIFY_SOCKET})); }
        print "$name begins\\n"; print STDERR qq({"message":"json of $name"}\\n);
        exit $1 if $mode =~ /^exit (\\d+)/;
        $SIG{TERM} = $mode eq 'stubborn' ? 'IGNORE' : sub { print "$name stops\\n"; exit 0 };
        if ($mode eq 'parent') { if (fork() == 0) { $0 = 'grandchild'; sleep 600; exit 0 } }
        tell_("READY=1") unless $mode eq 'mute';
        tell_("WATCHDOG=1") if $mode eq 'silent';
        print 'x' x 200000, "\\n" if $mode eq 'chatty';
        while (1) { tell_("WATCHDOG=1") unless $mode eq 'silent' or $mode eq 'mute'; select(undef, undef, undef, 0.2); }

        """
}

/// The input and the outcome of a supervisor’s thread.
private final class Run: Sendable {
    let configuration: SupervisorConfiguration
    let ended: NIOLockedValueBox<Bool>
    let failure: NIOLockedValueBox<Failure?>

    init(
        configuration: SupervisorConfiguration, ended: NIOLockedValueBox<Bool>, failure: NIOLockedValueBox<Failure?>
    ) {
        self.configuration = configuration
        self.ended = ended
        self.failure = failure
    }
}

/// Waits until the condition holds, polling every few milliseconds, and records an issue after the limit.
@discardableResult
func eventually(_ what: String, within limit: Duration = .seconds(60), _ condition: () -> Bool) -> Bool {
    let due = SystemClocks.monotonic().advanced(by: limit)
    while !condition() {
        guard SystemClocks.monotonic() < due else {
            Issue.record("within \(limit) it did not come to this: \(what)")
            return false
        }
        _ = poll(nil, 0, 5)
    }
    return true
}
