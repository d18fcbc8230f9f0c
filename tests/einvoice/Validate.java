import com.helger.diver.api.coord.DVRCoordinate;
import com.helger.io.resource.FileSystemResource;
import com.helger.phive.api.execute.ValidationExecutionManager;
import com.helger.phive.api.executorset.ValidationExecutorSetRegistry;
import com.helger.phive.api.validity.IValidityDeterminator;
import com.helger.phive.en16931.EN16931Validation;
import com.helger.phive.peppol.PeppolValidation;
import com.helger.phive.xml.source.IValidationSourceXML;
import com.helger.phive.xml.source.ValidationSourceXML;
import java.io.File;
import java.util.Locale;

/** Checks e-invoices: pairs of a rule set and a file. Prints a line for each finding. */
public class Validate {
  public static void main(String[] args) {
    var sets = new ValidationExecutorSetRegistry<IValidationSourceXML>();
    EN16931Validation.initEN16931(sets);
    PeppolValidation.initStandard(sets);
    for (int i = 0; i + 1 < args.length; i += 2) {
      var rules = sets.getOfID(DVRCoordinate.parseOrNull(args[i]));
      if (rules == null) {
        throw new IllegalArgumentException("no rule set " + args[i]);
      }
      var source = ValidationSourceXML.create(new FileSystemResource(new File(args[i + 1])));
      var result =
          ValidationExecutionManager.executeValidation(
              IValidityDeterminator.createDefault(), rules, source, Locale.ENGLISH);
      System.out.println("checked\t" + args[i + 1] + "\t" + result.size());
      result.forEachFlattened(
          e ->
              System.out.println(
                  e.getErrorLevel().getID()
                      + "\t"
                      + e.getErrorID()
                      + "\t"
                      + String.valueOf(e.getErrorText(Locale.ENGLISH)).replaceAll("\\s+", " ")));
    }
  }
}
